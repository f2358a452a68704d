package kube

import (
	"fmt"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// NewWholeView returns a cache that keeps whole objects and calls changed after
// every change.
func NewWholeView[T metav1.Object](name string, informer cache.SharedIndexInformer, changed func(), log *zap.Logger) (*View[T], error) {
	view, err := NewView(name, informer, log, func(obj any) (none T, err error) {
		return none, fmt.Errorf("object of type %T is no %T", obj, none)
	})
	if err != nil {
		return nil, err
	}
	_, err = view.OnChange(func(Change[T]) { changed() })
	return view, err
}
