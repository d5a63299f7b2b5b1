package main

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const finalizer = "samples.example.com/goodbye"

// reconciler keeps a ConfigMap with the text of each greeting, and says goodbye when one goes.
type reconciler struct {
	client.Client
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var greeting Greeting
	if err := r.Get(ctx, request.NamespacedName, &greeting); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if greeting.DeletionTimestamp != nil {
		goodbye := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: greeting.Namespace, Name: "goodbye-" + greeting.Name}}
		if err := r.Create(ctx, goodbye); client.IgnoreAlreadyExists(err) != nil {
			return ctrl.Result{}, err
		}
		controllerutil.RemoveFinalizer(&greeting, finalizer)
		return ctrl.Result{}, r.Update(ctx, &greeting)
	}
	if controllerutil.AddFinalizer(&greeting, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &greeting)
	}
	text := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: greeting.Namespace, Name: greeting.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, text, func() error {
		text.Data = map[string]string{"text": strings.Repeat("hello "+greeting.Spec.To+" ", int(greeting.Spec.Times))}
		return controllerutil.SetControllerReference(&greeting, text, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	before := greeting.DeepCopyObject().(*Greeting)
	greeting.Status.ObservedGeneration = greeting.Generation
	meta.SetStatusCondition(&greeting.Status.Conditions, metav1.Condition{
		Type: "Said", Status: metav1.ConditionTrue, Reason: "Said", ObservedGeneration: greeting.Generation,
	})
	return ctrl.Result{}, r.Status().Patch(ctx, &greeting, client.MergeFrom(before))
}

func (r *reconciler) register(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).For(&Greeting{}).Owns(&corev1.ConfigMap{}).Complete(r)
}
