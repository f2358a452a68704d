package decide_test

import (
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/internal/decidetest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// Users that Kubernetes acts as.
const (
	namespaceController = "system:serviceaccount:kube-system:namespace-controller"
	garbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	controllerManager   = "system:kube-controller-manager"
)

var (
	newWorld        = decidetest.NewWorld
	update          = decidetest.Update
	remove          = decidetest.Remove
	removeNamespace = decidetest.RemoveNamespace
	with            = decidetest.With
)

func labelled(labels map[string]string) func(*object.Full) {
	return func(o *object.Full) { o.Labels = labels }
}

func terminating(name string) func(*decide.World) {
	return func(w *decide.World) { w.Terminating = func(namespace string) bool { return namespace == name } }
}

func create(user string, created *object.Full) decide.Request {
	request := update(user, nil, created)
	request.Operation, request.Name = spec.Create, created.Name
	return request
}
