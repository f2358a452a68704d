// Package intern makes equal strings of cached objects share their memory. The handles
// of package unique would have to be kept beside the strings: without them, each garbage
// collection forgets the string.
package intern

import "sync"

// maxKnown bounds the strings that are kept although no object has them any more.
const maxKnown = 100_000

var (
	mu    sync.Mutex
	known = map[string]string{}
)

// String returns the string that it returned first for an equal one, unless that was
// forgotten. It is for names that many objects have: of namespaces, containers and kinds.
func String(s string) string {
	mu.Lock()
	defer mu.Unlock()
	if one, found := known[s]; found {
		return one
	}
	if len(known) >= maxKnown {
		clear(known)
	}
	known[s] = s
	return s
}
