package reload

// Sight is what the caches know of an object that an owner reference names.
type Sight string

// The sights.
const (
	// SightFound: it is there.
	SightFound Sight = "Found"
	// SightGone: its kind is read, and it is not there.
	SightGone Sight = "Gone"
	// SightUnread: its kind is still being read.
	SightUnread Sight = "Unread"
	// SightStrange: its kind is none whose pod template Headwater knows, or can
	// read.
	SightStrange Sight = "Strange"
)

// topmost says who has the say about the pod template of a workload.
type topmost struct {
	// top is the highest owner that Headwater may stamp; the workload itself
	// when there is none above it.
	top *Workload
	// unread is true when that cannot be told yet.
	unread bool
	// stranger is the controller of top, if its kind is a strange one: it may
	// take a stamp off again.
	stranger *Owner
}

// maxOwners bounds the walk: owner references may be made to go in a circle.
const maxOwners = 8

// topOf walks from w up to the highest owner that holds a pod template.
// What made a workload would set the workload's template back to its own, so
// the stamp belongs there. look tells what is known of an owner in w's
// namespace.
func topOf(w *Workload, look func(Owner) (*Workload, Sight)) topmost {
	s := topmost{top: w}
	for range maxOwners {
		above := s.top.Owner
		if above == nil {
			return s
		}
		owner, sight := look(*above)
		switch {
		case sight == SightUnread:
			s.unread = true
			return s
		case sight == SightStrange, sight == SightFound && !owner.templated():
			s.stranger = above
			return s
		case sight == SightGone, owner.UID != above.UID:
			return s // what is left of one that is being deleted
		}
		s.top = owner
	}
	return topmost{top: w}
}

// leave is what becomes of a workload that an owner above it is stamped for:
// nothing, and a baseline that is no longer kept must not be compared with some
// day.
func leave(stored string) Decision {
	if stored == "" {
		return Decision{Step: StepNothing, Reason: ReasonOwned}
	}
	return Decision{Step: StepAdopt, Reason: ReasonOwned}
}

// undone reports whether the stamp of the last restart was taken off w: by the
// owner, or by the schema of a declared kind, which may drop what it does not
// know.
func (w *Workload) undone(restartedAt string) bool {
	return !w.isOwnStamp() && !w.isTarget() && restartedAt != "" && w.Stamp == 0
}

// isOwnStamp reports whether w keeps what is written on its pod template, unless a
// person or a tool takes it off: nothing controls w, and its kind keeps annotations.
func (w *Workload) isOwnStamp() bool {
	declared := w.Form != nil && !isKnown(w.Kind)
	return w.Owner == nil && !declared
}
