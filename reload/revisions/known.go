package revisions

import "github.com/headwater-k8s/headwater/internal/object"

// seen is what is known of one clone of a revision that is being delivered.
type seen struct {
	// version is the resourceVersion in the cache.
	version string
	// judged is true if the consumers of that version were looked at, and the cache
	// shows what was reported.
	judged bool
	// reported is true if the clone has a report on the revision.
	reported bool
}

// knownUpTo returns the highest resourceVersion up to which every clone was judged, at
// least known. Clones with a report say themselves that they were judged.
func knownUpTo(known string, clones []seen) string {
	var least string
	for _, clone := range clones {
		if !clone.judged && (least == "" || object.NewerThan(least, clone.version)) {
			least = clone.version
		}
	}
	for _, clone := range clones {
		if clone.judged && !clone.reported && (least == "" || object.NewerThan(least, clone.version)) && (known == "" || object.NewerThan(clone.version, known)) {
			known = clone.version
		}
	}
	return known
}
