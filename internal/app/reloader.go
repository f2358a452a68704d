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
	"github.com/headwater-k8s/headwater/internal/notify"
	"github.com/headwater-k8s/headwater/internal/rules"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

// reloader puts a changed configuration file in force. A file that is not
// valid changes nothing: the last good one stays.
type reloader struct {
	settings Settings
	caches   *informers.Caches
	clients  *kube.Clients
	events   *events.Recorder
	kept     *lastValid
	log      *zap.Logger
	reloads  *prometheus.CounterVec
	good     prometheus.Gauge
	// invalid is what is on disk, while that is not in force.
	invalid atomic.Pointer[invalidFile]

	current    *config.Config
	sets       config.Sets
	safety     *live.Value[syncspec.Safety]
	notifier   *notify.Notifier
	protection *live.Value[protectspec.Settings]
	pace       *live.Value[*reloadspec.Compiled]
	sync       *rules.Live[syncspec.Rule]
	protect    *rules.Live[protectspec.Rule]
	reload     *rules.Live[reloadspec.Rule]
}

// invalidFile is a configuration that was read and not put in force.
type invalidFile struct {
	err   error
	since time.Time
}

type reloaderParams struct {
	fx.In

	Settings   Settings
	Loaded     *config.Config
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
}

func newReloader(p reloaderParams) *reloader {
	factory := promauto.With(p.Registry)
	r := &reloader{
		settings: p.Settings, caches: p.Caches, clients: p.Clients, events: p.Events, kept: p.Kept, log: p.Log.Named("config"),
		current: p.Loaded, sets: p.Sets, safety: p.Safety, notifier: p.Notifier, protection: p.Protection, pace: p.Pace,
		sync: p.Sync, protect: p.Protect, reload: p.Reload,
		reloads: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_config_reloads_total", Help: "Changes of the configuration file, by result.",
		}, []string{"result"}),
		good: factory.NewGauge(prometheus.GaugeOpts{
			Name: "headwater_config_valid", Help: "1 while the configuration file on disk is the one in force, 0 while it is not valid.",
		}),
	}
	r.good.Set(1)
	return r
}

// run watches the file until ctx ends; caches that a change needs run until
// cacheCtx does.
func (r *reloader) run(ctx, cacheCtx context.Context) {
	r.tellNotes()
	config.Watch(ctx, r.settings.ConfigFile, r.current.Revision, func() { r.changed(ctx, cacheCtx) }, func(err error) {
		r.log.Warn("changes of the configuration file are seen some seconds later: its directory cannot be watched; on Linux, "+
			"raise fs.inotify.max_user_instances of the node", zap.Error(err))
	})
}

func (r *reloader) trackSources(cacheCtx context.Context) error {
	return r.caches.Sources.Track(cacheCtx, r.sets.Places())
}

func (r *reloader) changed(ctx, cacheCtx context.Context) {
	loaded, err := config.LoadIn(r.settings.Namespace, r.settings.ConfigFile)
	var sets config.Sets
	if err == nil {
		sets, err = loaded.Compile(r.settings.Namespace)
	}
	if err != nil {
		r.refuse(ctx, err)
		return
	}
	if loaded.Protect.Certificates != r.current.Protect.Certificates {
		r.log.Warn("protect.certificates takes effect at the next start; everything else takes effect now")
	}
	r.current, r.sets = loaded, sets
	if err := r.trackSources(cacheCtx); err != nil {
		r.refuse(ctx, err)
		return
	}
	r.safety.Swap(loaded.Safety)
	r.notifier.Swap(loaded.Notify)
	// Settings before the rules, whose change has everything looked at.
	r.protection.Swap(loaded.Protect)
	r.pace.Swap(loaded.Reload.Compile())
	r.sync.Swap(sets.Sync)
	r.protect.Swap(sets.Protect)
	r.reload.Swap(sets.Reload)
	r.caches.Start(cacheCtx)
	r.reloads.WithLabelValues("applied").Inc()
	r.good.Set(1)
	r.invalid.Store(nil)
	r.kept.inForce(loaded)
	r.log.Info("configuration reloaded", zap.Int("rules", len(loaded.Rules)))
	r.tellNotes()
}

// tellNotes logs the notes on the file in force.
func (r *reloader) tellNotes() {
	for _, note := range r.current.Notes {
		r.log.Warn("configuration valid, but probably not intended: "+note.Message, zap.String("path", note.Path), zap.Int("line", note.Line))
	}
}

func (r *reloader) refuse(ctx context.Context, err error) {
	r.reloads.WithLabelValues("refused").Inc()
	r.good.Set(0)
	r.invalid.Store(&invalidFile{err, time.Now()})
	r.log.Error("configuration not valid, the last good one stays in force", zap.Error(err))
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r.events.Record(events.Event{
		About:   aboutConfiguration(ctx, r.clients.Typed, r.settings, r.log),
		Warning: true, Reason: "ConfigInvalid", Action: "Reload", Persisting: true,
		Note: "the configuration is not valid, the last valid one stays in force; the log and headwater check say why: " + whereInvalid(err),
	})
}

// invalidAt is whereInvalid of the configuration on disk; empty while that is in force.
func (r *reloader) invalidAt() string {
	invalid := r.invalid.Load()
	if invalid == nil {
		return ""
	}
	return whereInvalid(invalid.err)
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
