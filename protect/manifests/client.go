package manifests

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

func clientConfig(e spec.Endpoint, question decide.Scope, caBundle []byte) admissionregistrationv1.WebhookClientConfig {
	config := admissionregistrationv1.WebhookClientConfig{CABundle: caBundle}
	path, port := question.Path(), int32(spec.ServicePort)
	if e.URL != "" {
		config.URL = new(e.URL + path)
		return config
	}
	config.Service = &admissionregistrationv1.ServiceReference{
		Namespace: e.Namespace, Name: spec.ServiceName, Path: &path, Port: &port,
	}
	return config
}
