package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/config"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/notify"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/sync"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

// reloader puts a changed configuration file in force. A file that is not
// valid, or held, changes nothing: the last good one stays.
type reloader struct {
	in reloaderParams

	reloads *prometheus.CounterVec
	good    prometheus.Gauge
	held    prometheus.Gauge
	// invalid is what is on disk, while that is not in force.
	invalid atomic.Pointer[invalidFile]

	// changes counts the starts and the ends of changes of what is in force.
	changes atomic.Uint64
	// again has the file read again, though it did not change.
	again   loop.Wake
	current *config.Config
}

// invalidFile is a configuration that was read and not put in force.
type invalidFile struct {
	err   error
	since time.Time
}

// held returns why it is held; nil if it is not valid, or if f is nil.
func (f *invalidFile) held() (held *config.HeldError) {
	if f != nil && errors.As(f.err, &held) {
		return held
	}
	return nil
}

type reloaderParams struct {
	fx.In

	Settings   Settings
	Started    *Started
	Sets       config.Sets
	Caches     *informers.Caches
	Clients    *kube.Clients
	Events     *events.Recorder
	Kept       *lastValid
	Registry   *prometheus.Registry
	Log        *zap.Logger
	Safety     *live.Value[syncspec.Safety]
	Notifier   *notify.Notifier
	Protection *live.Value[protectspec.Settings]
	Pace       *live.Value[*reloadspec.Compiled]
	Sync       *rules.Live[syncspec.Rule]
	Protect    *rules.Live[protectspec.Rule]
	Reload     *rules.Live[reloadspec.Rule]
	View       *sync.View
}

func newReloader(p reloaderParams) (*reloader, error) {
	factory := promauto.With(p.Registry)
	p.Log = p.Log.Named("config")
	r := &reloader{
		in: p, again: loop.NewWake(), current: p.Started.Config,
		reloads: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_config_reloads_total", Help: "Changes of the configuration file, by result.",
		}, []string{"result"}),
		good: factory.NewGauge(prometheus.GaugeOpts{
			Name: "headwater_config_valid", Help: "1 while the configuration file on disk is the one in force, 0 while it is not valid, or held.",
		}),
		held: factory.NewGauge(prometheus.GaugeOpts{
			Name: "headwater_config_held", Help: "1 while a valid configuration file waits for an approval, because it removes rules.",
		}),
	}
	r.good.Set(1)
	if p.Started.held != nil {
		r.invalid.Store(&invalidFile{p.Started.held, time.Now()})
	}
	return r, p.View.OnApproval(func() {
		if r.invalid.Load().held() != nil {
			r.again.Notify()
		}
	})
}

// run watches the file until ctx ends; caches that a change needs run until
// cacheCtx does.
func (r *reloader) run(ctx, cacheCtx context.Context) {
	r.tellNotes()
	if held := r.in.Started.held; held != nil {
		r.refuse(ctx, held)
	}
	config.Watch(ctx, r.in.Settings.ConfigFile, r.in.Started.file, r.again, func() { r.changed(ctx, cacheCtx) }, func(err error) {
		r.in.Log.Warn("changes of the configuration file are seen some seconds later: its directory cannot be watched; on Linux, "+
			"raise fs.inotify.max_user_instances of the node", zap.Error(err))
	})
}

func (r *reloader) trackSources(cacheCtx context.Context) error {
	return r.in.Caches.Sources.Track(cacheCtx, r.in.Sets.Places())
}

func (r *reloader) changed(ctx, cacheCtx context.Context) {
	loaded, err := r.in.Settings.load()
	var sets config.Sets
	if err == nil {
		sets, err = loaded.Compile(r.in.Settings.Namespace)
	}
	if err == nil {
		err = r.hold(ctx, loaded)
	}
	if err != nil {
		r.refuse(ctx, err)
		return
	}
	if loaded.Protect.Certificates != r.current.Protect.Certificates {
		r.in.Log.Warn("protect.certificates takes effect at the next start; everything else takes effect now")
	}
	if err := r.in.Caches.Sources.Track(cacheCtx, sets.Places()); err != nil {
		r.refuse(ctx, err)
		return
	}
	r.tellWeakened(ctx, r.current, loaded)
	r.current, r.in.Sets = loaded, sets
	r.changes.Add(1)
	r.in.Kept.putInForce(ctx, loaded)
	r.in.Safety.Swap(loaded.Safety)
	r.in.Notifier.Swap(loaded.Notify)
	// Settings before the rules, whose change has everything looked at.
	r.in.Protection.Swap(loaded.Protect)
	r.in.Pace.Swap(loaded.Reload.Compile())
	r.in.Sync.Swap(sets.Sync)
	r.in.Protect.Swap(sets.Protect)
	r.in.Reload.Swap(sets.Reload)
	r.changes.Add(1)
	r.in.Caches.Start(cacheCtx)
	r.reloads.WithLabelValues("applied").Inc()
	r.good.Set(1)
	r.held.Set(0)
	r.invalid.Store(nil)
	r.in.Log.Info("configuration reloaded", zap.Int("rules", len(loaded.Rules)))
	r.tellNotes()
}

// tellNotes logs the notes on the file in force.
func (r *reloader) tellNotes() {
	for _, note := range r.current.Notes {
		r.in.Log.Warn("configuration valid, but probably not intended: "+note.Message, zap.String("path", note.Path), zap.Int("line", note.Line))
	}
}

// refuse keeps what is in force. err says why the file is not.
func (r *reloader) refuse(ctx context.Context, err error) {
	r.reloads.WithLabelValues("refused").Inc()
	r.good.Set(0)
	r.invalid.Store(&invalidFile{err, time.Now()})
	refusal := r.refused()
	if r.invalid.Load().held() != nil {
		r.held.Set(1)
		r.in.Log.Error("configuration held, the last one stays in force", zap.Error(err))
		r.tell(ctx, events.Event{Warning: true, Reason: refusal.Reason, Action: "Reload", Persisting: true, Note: refusal.Message})
		return
	}
	r.held.Set(0)
	r.in.Log.Error("configuration not valid, the last good one stays in force", zap.Error(err))
	r.tell(ctx, events.Event{
		Warning: true, Reason: "ConfigInvalid", Action: "Reload", Persisting: true,
		Note: "the configuration is not valid, the last valid one stays in force; the log and headwater check say why: " + whereInvalid(err),
	})
}

// refused says why the configuration on disk is not in force; empty while it is.
func (r *reloader) refused() rulestatus.Refusal {
	invalid := r.invalid.Load()
	switch held := invalid.held(); {
	case invalid == nil:
		return rulestatus.Refusal{}
	case held != nil:
		return rulestatus.Refusal{Reason: "RulesHeld", Message: held.Error()}
	default:
		return rulestatus.Refusal{
			Reason:  "Invalid",
			Message: "the configuration was changed and is not valid (" + whereInvalid(invalid.err) + "); the last valid one stays in force",
		}
	}
}

// whereInvalid says where a configuration is not valid, and not what is written
// there: it may be a token in the wrong place.
func whereInvalid(err error) string {
	var problems config.Problems
	if !errors.As(err, &problems) {
		return "it cannot be read"
	}
	var places []string
	for _, problem := range problems {
		places = append(places, strings.TrimSpace(fmt.Sprintf("line %d %s", problem.Line, problem.Path)))
	}
	return strings.Join(places, ", ")
}
