package serve

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

const notLocal = `this page only answers requests from localhost: use "kubectl port-forward" and open http://localhost:PORT, ` +
	"or start Headwater with --metrics-auth, which authorizes users by RBAC"

const notTrusted = "this page needs authorization: start Headwater with --metrics-auth, which authorizes users by RBAC, " +
	`or, if no other container of its pod forwards requests, with --page-localhost, and use "kubectl port-forward"`

// local allows requests from this machine, if trusted, for example through a
// port-forward, whose Host is localhost or a loopback address. Checking the
// Host prevents DNS rebinding: a website whose name resolves to this machine
// sends its own name. A request that another container of the pod forwards, such as
// the proxy of a service mesh, comes from this machine too and looks the same.
func local(trusted bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		switch {
		case !trusted:
			http.Error(w, notTrusted, http.StatusForbidden)
		case err != nil || !peer.Addr().Unmap().IsLoopback() || !isLocalhost(r.Host):
			http.Error(w, notLocal, http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
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
