package spec_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/reload/spec"
)

// withDefaults ask each kubelet once.
func withDefaults(settings spec.Settings) spec.Settings {
	if settings.ConfirmRefreshAfter == nil {
		settings.ConfirmRefreshAfter = &metav1.Duration{}
	}
	settings.Default()
	return settings
}
