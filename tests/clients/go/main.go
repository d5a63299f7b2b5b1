// Widgets through client-go: typed by the server alone (dynamic client and informer) against the server that
// KUBECONFIG names. Exits 1 with one line if anything is not as it should be.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const patience = 30 * time.Second

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("client-go: discovery, informer and writes of widgets work")
}

func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	if err := discovered(discovery.NewDiscoveryClientForConfigOrDie(config)); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	events, err := informed(ctx, client)
	if err != nil {
		return err
	}
	return written(ctx, client.Resource(widgets).Namespace("default"), events)
}

// discovered checks that both versions and their resources are announced.
func discovered(client discovery.DiscoveryInterface) error {
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return fmt.Errorf("discovery: %w", err)
	}
	found := map[string]bool{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			found[list.GroupVersion+"/"+resource.Name] = true
		}
	}
	for _, want := range []string{"example.com/v1/widgets", "example.com/v1/widgets/scale", "example.com/v1/factories", "example.com/v1beta1/widgets"} {
		if !found[want] {
			return fmt.Errorf("discovery lacks %s", want)
		}
	}
	return nil
}

// informed starts an informer and returns what it is told, once it has the first list.
func informed(ctx context.Context, client dynamic.Interface) (<-chan string, error) {
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := factory.ForResource(widgets).Informer()
	events := make(chan string, 64)
	tell := func(what string, object any) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		events <- what + " " + object.(*unstructured.Unstructured).GetName()
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell("added", object) },
		UpdateFunc: func(_, object any) { tell("updated", object) },
		DeleteFunc: func(object any) { tell("deleted", object) },
	})
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("the informer did not sync")
	}
	return events, nil
}

// written creates, updates and deletes a widget and waits for the informer to be told of each.
func written(ctx context.Context, client dynamic.ResourceInterface, events <-chan string) error {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1",
		"kind":       "Widget",
		"metadata":   map[string]any{"name": "from-go"},
		"spec":       map[string]any{"sizeMillimeters": int64(7)},
	}}
	made, err := client.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if color, _, _ := unstructured.NestedString(made.Object, "spec", "color"); color != "Green" {
		return fmt.Errorf("created with color %q, want the default Green", color)
	}
	if err := expect(ctx, events, "added from-go"); err != nil {
		return err
	}
	made.SetLabels(map[string]string{"by": "go"})
	if _, err := client.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	if err := expect(ctx, events, "updated from-go"); err != nil {
		return err
	}
	if _, err := client.Update(ctx, made, metav1.UpdateOptions{}); err == nil {
		return fmt.Errorf("an update with an old resourceVersion succeeded")
	}
	if err := client.Delete(ctx, "from-go", metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return expect(ctx, events, "deleted from-go")
}

// expect waits for an event; those of other widgets are passed over.
func expect(ctx context.Context, events <-chan string, want string) error {
	for {
		select {
		case event := <-events:
			if event == want {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("the informer was not told: %s", want)
		}
	}
}
