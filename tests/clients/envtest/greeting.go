package main

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	version   = schema.GroupVersion{Group: "samples.example.com", Version: "v1"}
	greetings = version.WithResource("greetings")
)

// Greeting says hello to somebody.
type Greeting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GreetingSpec   `json:"spec"`
	Status            GreetingStatus `json:"status,omitempty"`
}

// GreetingSpec says to whom, and how often.
type GreetingSpec struct {
	To    string `json:"to"`
	Times int64  `json:"times,omitempty"`
}

// GreetingStatus says what was said.
type GreetingStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// GreetingList is several of them.
type GreetingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Greeting `json:"items"`
}

func (g *Greeting) DeepCopyObject() runtime.Object {
	out := *g
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = append([]metav1.Condition(nil), g.Status.Conditions...)
	return &out
}

func (l *GreetingList) DeepCopyObject() runtime.Object {
	out := &GreetingList{TypeMeta: l.TypeMeta, Items: make([]Greeting, len(l.Items))}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Greeting)
	}
	return out
}

func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(version, &Greeting{}, &GreetingList{})
	metav1.AddToGroupVersion(scheme, version)
}

// definition is the CustomResourceDefinition of greetings.
func definition() *apiextensionsv1.CustomResourceDefinition {
	one, shortest := float64(1), int64(1)
	object := func(required []string, properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties, Required: required}
	}
	spec := object([]string{"to"}, map[string]apiextensionsv1.JSONSchemaProps{
		"to":    {Type: "string", MinLength: &shortest},
		"times": {Type: "integer", Minimum: &one, Default: &apiextensionsv1.JSON{Raw: []byte("1")}},
	})
	spec.XValidations = apiextensionsv1.ValidationRules{{Rule: "self.times <= 3", Message: "that is too often"}}
	keep := true
	listType := "map"
	condition := apiextensionsv1.JSONSchemaProps{
		Type: "object", XPreserveUnknownFields: &keep, Required: []string{"type"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"type": {Type: "string"}},
	}
	status := object(nil, map[string]apiextensionsv1.JSONSchemaProps{
		"observedGeneration": {Type: "integer", Format: "int64"},
		"conditions": {
			Type: "array", XListType: &listType, XListMapKeys: []string{"type"},
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &condition},
		},
	})
	root := object(nil, map[string]apiextensionsv1.JSONSchemaProps{"spec": spec, "status": status})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "greetings." + version.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: version.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "greetings", Kind: "Greeting"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version.Version, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &root},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}
