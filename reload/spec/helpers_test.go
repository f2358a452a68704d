package spec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// withDefaults ask each kubelet once.
func withDefaults(settings Settings) Settings {
	if settings.ConfirmRefreshAfter == nil {
		settings.ConfirmRefreshAfter = &metav1.Duration{}
	}
	settings.Default()
	return settings
}
