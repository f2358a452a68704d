package serve

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

const notLocal = `this page only answers requests from localhost: use "kubectl port-forward" and open http://localhost:PORT, ` +
	"or start Headwater with --metrics-auth, which authorizes users by RBAC"

// local only allows requests from this machine, for example through a
// port-forward, whose Host is localhost or a loopback address. Checking the
// Host prevents DNS rebinding: a website whose name resolves to this machine
// sends its own name.
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

// isLocalhost reports whether host, with or without a port, names this machine.
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
