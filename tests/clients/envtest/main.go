// A controller of a custom resource, run by controller-runtime's envtest, whose kube-apiserver is the program in the folder
// that KUBEBUILDER_ASSETS names. Exits 1 with one line if anything is not as it should be.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const patience = 60 * time.Second

var name = types.NamespacedName{Namespace: "default", Name: "world"}

func main() {
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	environment := &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition()}}
	config, err := environment.Start()
	if err == nil {
		err = run(config)
	}
	if stopped := environment.Stop(); stopped != nil {
		err = errors.Join(err, fmt.Errorf("stop: %w", stopped))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("envtest: a controller of a custom resource works")
}

func run(config *rest.Config) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	addToScheme(scheme)
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if err := (&reconciler{manager.GetClient()}).register(manager); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	told, err := informed(ctx, config)
	if err != nil {
		return err
	}
	if err := used(ctx, direct, config); err != nil {
		return err
	}
	if err := until(ctx, "informers tell of it", func() error {
		if told.added.Load() != 2 || told.deleted.Load() != 2 || told.updated.Load() < 2 {
			return fmt.Errorf("%d added, %d updated, %d deleted", told.added.Load(), told.updated.Load(), told.deleted.Load())
		}
		return nil
	}); err != nil {
		return err
	}
	cancel()
	return <-ended
}

// used makes a greeting and does to it what users do.
func used(ctx context.Context, c client.Client, config *rest.Config) error {
	greeting := &Greeting{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	if err := c.Create(ctx, greeting); !apierrors.IsInvalid(err) {
		return fmt.Errorf("a greeting of nobody: %v", err)
	}
	greeting.Spec.To = "world"
	if err := c.Create(ctx, greeting); err != nil {
		return err
	}
	if greeting.Spec.Times != 1 {
		return fmt.Errorf("no default: %v", greeting.Spec)
	}
	if err := says(ctx, c, "hello world "); err != nil {
		return err
	}
	if err := applied(ctx, config, 2); err != nil {
		return err
	}
	if err := applied(ctx, config, 4); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "that is too often") {
		return fmt.Errorf("a rule that is broken: %v", err)
	}
	if err := says(ctx, c, "hello world hello world "); err != nil {
		return err
	}
	// What the controller owns comes back.
	if err := c.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}); err != nil {
		return err
	}
	if err := says(ctx, c, "hello world hello world "); err != nil {
		return err
	}
	if err := c.Delete(ctx, greeting); err != nil {
		return err
	}
	return until(ctx, "the greeting goes", func() error {
		var goodbye corev1.ConfigMap
		if err := c.Get(ctx, types.NamespacedName{Namespace: name.Namespace, Name: "goodbye-" + name.Name}, &goodbye); err != nil {
			return err
		}
		if err := c.Get(ctx, name, &Greeting{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
}

// applied has another manager own how often it is said.
func applied(ctx context.Context, config *rest.Config, times int64) error {
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version.String(), "kind": "Greeting", "metadata": map[string]any{"name": name.Name},
		"spec": map[string]any{"times": times},
	}}
	options := metav1.ApplyOptions{FieldManager: "often", Force: true}
	_, err = dynamicClient.Resource(greetings).Namespace(name.Namespace).Apply(ctx, name.Name, object, options)
	return err
}

// says waits until the controller has written this text, and said so.
func says(ctx context.Context, c client.Client, text string) error {
	return until(ctx, "the controller says "+text, func() error {
		var found corev1.ConfigMap
		if err := c.Get(ctx, name, &found); err != nil {
			return err
		}
		var greeting Greeting
		if err := c.Get(ctx, name, &greeting); err != nil {
			return err
		}
		conditions := greeting.Status.Conditions
		if found.Data["text"] != text || greeting.Status.ObservedGeneration != greeting.Generation || len(conditions) != 1 {
			return fmt.Errorf("%v %v", found.Data, greeting.Status)
		}
		return nil
	})
}

// counts is what informers were told.
type counts struct{ added, updated, deleted atomic.Int64 }

// informed counts what a dynamic informer and one of metadata are told of greetings.
func informed(ctx context.Context, config *rest.Config) (*counts, error) {
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	told := &counts{}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { told.added.Add(1) },
		UpdateFunc: func(any, any) { told.updated.Add(1) },
		DeleteFunc: func(any) { told.deleted.Add(1) },
	}
	all := []cache.SharedIndexInformer{
		dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0).ForResource(greetings).Informer(),
		metadatainformer.NewSharedInformerFactory(metadataClient, 0).ForResource(greetings).Informer(),
	}
	for _, informer := range all {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, err
		}
		go informer.RunWithContext(ctx)
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return nil, errors.New("an informer does not sync")
		}
	}
	return told, nil
}

// until tries something until it holds.
func until(ctx context.Context, what string, try func() error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w (%v)", what, err, last)
	}
	return nil
}
