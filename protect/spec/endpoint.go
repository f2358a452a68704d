package spec

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// Hosts is what a serving certificate must be valid for.
type Hosts struct {
	Names []string
	IPs   []net.IP
}

// ServiceName is the Service through which the API server reaches the webhook,
// in Headwater's own namespace.
const ServiceName = "headwater-webhook"

// ServicePort is the port of the Service.
const ServicePort = 443

// Endpoint is where the API server reaches the webhook.
type Endpoint struct {
	// URL is set when the webhook is reached outside the cluster's network.
	URL string
	// Namespace holds the Service; it is used without a URL.
	Namespace string
	// Hosts is what a serving certificate is made for.
	Hosts Hosts
	// ServerName is the one of them that the API server insists on.
	ServerName string
}

// NewEndpoint returns the endpoint at webhookURL, or, when that is empty, the
// Service in namespace. It fails when the API server would not accept the URL.
func NewEndpoint(webhookURL, namespace string) (Endpoint, error) {
	if webhookURL == "" {
		service := ServiceName + "." + namespace
		return Endpoint{Namespace: namespace, ServerName: service + ".svc", Hosts: Hosts{
			Names: []string{service, service + ".svc", service + ".svc.cluster.local"},
		}}, nil
	}
	parsed, err := url.Parse(webhookURL)
	if err != nil {
		return Endpoint{}, fmt.Errorf("webhook URL: %w", err)
	}
	if parsed.Scheme != "https" || parsed.Hostname() == "" {
		return Endpoint{}, fmt.Errorf("webhook URL %s: give an address such as https://127.0.0.1:9443", parsed.Redacted())
	}
	if parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		return Endpoint{}, errors.New("webhook URL: a user, a query or a fragment is not possible")
	}
	hosts := Hosts{Names: []string{parsed.Hostname()}}
	if ip := net.ParseIP(parsed.Hostname()); ip != nil {
		hosts = Hosts{IPs: []net.IP{ip}}
	}
	return Endpoint{
		URL: strings.TrimSuffix(parsed.String(), "/"), Hosts: hosts, ServerName: parsed.Hostname(),
	}, nil
}
