package serve

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

const notLocal = `this page is for localhost alone: use "kubectl port-forward" and open http://localhost:PORT, ` +
	"or start Headwater with --metrics-auth, which lets those in who may get it by RBAC"

// local lets those pass who ask from this machine or by a port-forward, which
// arrives from it, and call it localhost or by its address: a website whose
// name was made to lead here (DNS rebinding) sends its own name.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !peer.Addr().Unmap().IsLoopback() || !isLocalhost(r.Host) {
			http.Error(w, notLocal, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLocalhost takes the Host of a request, with a port or without.
func isLocalhost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.Unmap().IsLoopback()
}
