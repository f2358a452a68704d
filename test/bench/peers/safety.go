package main

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// mayLoad refuses a cluster that is not on this machine, unless it was named.
func mayLoad(host, context, yes string) error {
	if yes != "" && yes != context {
		return fmt.Errorf("-yes-this-cluster %s: the context is %s", yes, context)
	}
	if yes == context && yes != "" || isLoopback(host) {
		return nil
	}
	return fmt.Errorf("%s, by context %s, is not on this machine: this makes some hundreds of objects there, in namespaces of its own, "+
		"and writes them as fast as it can; -yes-this-cluster %s does it anyway", host, context, context)
}

func isLoopback(host string) bool {
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	parsed, err := url.Parse(host)
	if err != nil {
		return false
	}
	if parsed.Hostname() == "localhost" {
		return true
	}
	ip := net.ParseIP(parsed.Hostname())
	return ip != nil && ip.IsLoopback()
}

// fence lets no write leave but to namespaces that were made by this run,
// whatever the code around it does.
type fence struct {
	next http.RoundTripper
	made *namespaces
}

// RoundTrip implements http.RoundTripper.
func (f fence) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet || f.made.within(request.Method, request.URL.Path) {
		return f.next.RoundTrip(request)
	}
	if request.Body != nil {
		_ = request.Body.Close()
	}
	return nil, fmt.Errorf("not sent: %s %s is outside of the namespaces that this run has made", request.Method, request.URL.Path)
}

func (f fence) wrap(next http.RoundTripper) http.RoundTripper { return fence{next: next, made: f.made} }
