package manifests

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

func clientConfig(endpoint spec.Endpoint, scope decide.Scope, caBundle []byte) admissionregistrationv1.WebhookClientConfig {
	config := admissionregistrationv1.WebhookClientConfig{CABundle: caBundle}
	path, port := scope.Path(), int32(spec.ServicePort)
	if endpoint.URL != "" {
		config.URL = new(endpoint.URL + path)
		return config
	}
	config.Service = &admissionregistrationv1.ServiceReference{
		Namespace: endpoint.Namespace, Name: spec.ServiceName, Path: &path, Port: &port,
	}
	return config
}
