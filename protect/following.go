package protect

import (
	"fmt"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/loop"
)

// following is a cache of whole objects that wakes on every change.
func following[T metav1.Object](name string, informer cache.SharedIndexInformer, wake loop.Wake, log *zap.Logger) (*kube.View[T], error) {
	view, err := kube.NewView(name, informer, log, func(obj any) (none T, err error) {
		return none, fmt.Errorf("object of type %T is no %T", obj, none)
	})
	if err != nil {
		return nil, err
	}
	_, err = view.OnChange(func(kube.Change[T]) { wake.Up() })
	return view, err
}
