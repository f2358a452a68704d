package app

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/log"
)

// stopMargin is what a graceful stop takes at most beside the webhook's drain. At
// the default drain both are shorter than the 30 s that Kubernetes grants a pod.
const stopMargin = 10 * time.Second

// Run runs Headwater until it is told to stop by SIGTERM or SIGINT, which
// gives nil, or until something happens that it cannot heal. A second signal
// ends the stop, and is an error.
func Run(ctx context.Context, settings Settings) error {
	if err := settings.Validate(); err != nil {
		return err
	}
	logger, err := log.New(settings.LogFormat, settings.LogLevel)
	if err != nil {
		return err
	}
	log.BridgeKlog(logger)
	loaded, err := settings.load()
	if err != nil {
		return err
	}
	logger.Info("Headwater starts", zap.String("version", Version), zap.String("commit", Commit),
		zap.String("configuration", settings.ConfigFile), zap.Int("rules", len(loaded.Rules)))
	clients, err := kube.Connect(settings.Kubeconfig, "headwater/"+Version)
	if err != nil {
		return err
	}
	clients.Scope = settings.scope()
	begins := compare(ctx, clients.Typed, settings.Namespace, loaded)
	var failed *failure
	stopTimeout := settings.WebhookDrain + stopMargin
	app := fx.New(Options(settings, begins, clients, logger), fx.Populate(&failed), fx.StopTimeout(stopTimeout))
	if err := app.Err(); err != nil {
		return err
	}
	if err := app.Start(ctx); err != nil {
		return err
	}
	<-app.Wait()
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err = stop(stopCtx, app, logger)
	return cmp.Or(failed.get(), err)
}

// errToldTwice is what a second signal ends the process with.
var errToldTwice = errors.New("told a second time to stop: ended at once; what was under way is left as it is, " +
	"and another replica leads only once the lease has run out")

// stop stops app gracefully, unless a signal says that this takes too long.
func stop(ctx context.Context, app *fx.App, logger *zap.Logger) error {
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	logger.Info("Headwater is stopping; a second signal ends it at once")
	stopped := make(chan error, 1)
	go func() { stopped <- app.Stop(ctx) }()
	select {
	case <-again:
		return errToldTwice
	case err := <-stopped:
		if err != nil {
			logger.Error("stop was not graceful", zap.Error(err))
			return nil
		}
		logger.Info("Headwater has stopped")
		return nil
	}
}

// failure holds what ended the process, for main to tell.
type failure struct{ err atomic.Pointer[error] }

func (f *failure) set(err error) { f.err.CompareAndSwap(nil, &err) }

func (f *failure) get() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Set by the linker.
var (
	Version = "dev"
	Commit  = "unknown"
)

// BuildInfo says what this binary was built from.
type BuildInfo struct {
	Version   string `json:"version"`
	Commit    string `json:"commit"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// Build returns what this binary was built from.
func Build() BuildInfo {
	return BuildInfo{
		Version: Version, Commit: Commit, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// buildInfo is a metric to join others with, and to see a rollout by.
func buildInfo() prometheus.Collector {
	build := Build()
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "headwater_build_info", Help: "1; the labels say what this binary was built from.",
		ConstLabels: prometheus.Labels{"version": build.Version, "commit": build.Commit, "go_version": build.GoVersion},
	}, func() float64 { return 1 })
}
