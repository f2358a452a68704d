package spec

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/headwater-k8s/headwater/internal/digest"
)

// Hosts are the names and addresses that a serving certificate must be valid
// for.
type Hosts struct {
	Names []string
	IPs   []net.IP
}

// ServiceName is the Service, in Headwater's namespace, through which the API
// server calls the webhook.
const ServiceName = "headwater-webhook"

// ServicePort is the port of the Service.
const ServicePort = 443

// Endpoint is how the API server reaches the webhook: by a Service or by a URL.
type Endpoint struct {
	// URL is set if the webhook runs outside the cluster network.
	URL string
	// Namespace is the namespace of the Service. It is used only without a URL.
	Namespace string
	// Segment follows ReviewPath in the path, if it is not empty. It is a keyed digest
	// of the CA bundle, so that other clients of the network cannot guess it, while
	// every replica computes the same one.
	Segment string
	// Hosts are what Headwater issues the serving certificate for.
	Hosts Hosts
	// ServerName is the host name that the API server verifies in the
	// certificate.
	ServerName string
}

// NewEndpoint returns the endpoint for webhookURL. If webhookURL is empty, it
// returns the Service in namespace. It fails if the API server would reject the
// URL: a URL must be HTTPS, without user, query and fragment.
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
		return Endpoint{}, fmt.Errorf("webhook URL %s: use an https URL such as https://127.0.0.1:9443", parsed.Redacted())
	}
	if parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		return Endpoint{}, errors.New("webhook URL: remove the user, query or fragment; the API server rejects them")
	}
	hosts := Hosts{Names: []string{parsed.Hostname()}}
	if ip := net.ParseIP(parsed.Hostname()); ip != nil {
		hosts = Hosts{IPs: []net.IP{ip}}
	}
	return Endpoint{
		URL: strings.TrimSuffix(parsed.String(), "/"), Hosts: hosts, ServerName: parsed.Hostname(),
	}, nil
}

// IsSegment reports whether text has the form of a segment: a digest.Sum.
func IsSegment(text string) bool {
	decoded, err := hex.DecodeString(text)
	return err == nil && len(decoded) == len(digest.Sum{})
}
