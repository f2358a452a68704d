package app

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Started is what the process begins with.
type Started struct {
	// Config is in force. It is the file's, unless that is held.
	Config *config.Config
	held   *config.HeldError
	// file is the revision of the file.
	file string
	// before was in force last; nil if nothing is recorded that this version can read.
	// unread is why that is not known yet.
	before *config.Config
	unread error
}

// compare compares the configuration of the file with the one that was last in force.
func compare(ctx context.Context, client kubernetes.Interface, namespace string, loaded *config.Config) *Started {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	begins := &Started{Config: loaded, file: loaded.Revision}
	begins.before, begins.unread = readLastValid(ctx, client, namespace)
	if begins.before == nil || begins.unread != nil {
		return begins
	}
	// Whether it is approved is asked again once the approvals are cached.
	if begins.held, _, _ = heldUnlessApproved(ctx, client, namespace, begins.before, loaded); begins.held != nil {
		begins.Config = begins.before
	}
	return begins
}

// heldUnlessApproved is config.Held, unless a person approved next. approval is then
// theirs. What cannot be read counts as not approved: held comes with the error.
func heldUnlessApproved(ctx context.Context, client kubernetes.Interface, namespace string, current, next *config.Config) (held *config.HeldError, approval *survey.Approval, err error) {
	if held = current.Held(next); held == nil {
		return nil, nil, nil
	}
	approved, err := survey.ApprovedConfiguration(ctx, client, namespace)
	if err != nil || approved.Configuration != next.Revision {
		return held, nil, err
	}
	return nil, &approved, nil
}

// checkStart finds out what was in force before, if that was not known when the process
// began. If the file is then held, the process has to begin again.
func (r *reloader) checkStart(ctx context.Context) error {
	if r.in.Started.unread != nil {
		again := compare(ctx, r.in.Clients.Typed, r.in.Settings.Namespace, r.current)
		if again.unread != nil {
			return again.unread
		}
		if again.held != nil {
			return kube.FatalError{Err: fmt.Errorf("the cluster could not be asked at the start what was in force before: %w", again.held)}
		}
		r.in.Started = again
	}
	if before := r.in.Started.before; before != nil {
		r.tellWeakened(ctx, before, r.current)
	} else {
		const note = "no earlier configuration of this installation is recorded that this version can read, so nobody knows whether this one removes rules that were in force"
		r.in.Log.Warn(note)
		r.tell(ctx, events.Event{Reason: "RulesNotCompared", Action: "Start", Note: note})
	}
	return nil
}

// isNotCompared reports whether nobody knows what was in force before the configuration
// in force.
func (r *reloader) isNotCompared() bool {
	return r.in.Started.before == nil && r.in.Started.unread == nil && r.in.Kept.inForce.Load() == r.in.Started.Config
}

// approvalRetry is the delay after it could not be read whether a person approved a
// configuration: they do not do that again.
const approvalRetry = 10 * time.Second

// hold returns the HeldError of loaded, unless a person approved it.
func (r *reloader) hold(ctx context.Context, loaded *config.Config) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	held, approval, err := heldUnlessApproved(ctx, r.in.Clients.Typed, r.in.Settings.Namespace, r.current, loaded)
	if err != nil {
		r.in.Log.Warn("cannot tell whether the configuration is approved; retrying", zap.Error(err))
		time.AfterFunc(approvalRetry, r.again.Notify)
	}
	if held != nil {
		return held
	}
	if approval != nil {
		r.tell(ctx, events.Event{Reason: "Approved", Action: "Reload", Note: fmt.Sprintf("revision %s of the configuration: %s", loaded.Revision, approval)})
	}
	return nil
}

// tellWeakened reports what loaded, which is about to be in force, protects less than before.
func (r *reloader) tellWeakened(ctx context.Context, before, loaded *config.Config) {
	for _, line := range before.Weakened(loaded) {
		r.in.Log.Warn("the configuration protects less than before", zap.String("what", line))
		r.tell(ctx, events.Event{Warning: true, Reason: "ProtectionWeakened", Action: "Reload", Note: "the configuration protects less than before: " + line})
	}
}

// tell records an Event about the configuration.
func (r *reloader) tell(ctx context.Context, event events.Event) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	event.About = aboutConfiguration(ctx, r.in.Clients.Typed, r.in.Settings, r.in.Log)
	r.in.Events.Record(event)
}
