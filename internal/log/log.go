// Package log builds the process's logger and routes the logs of client-go
// and fx through it.
package log

import (
	"fmt"

	"github.com/go-logr/zapr"
	"go.uber.org/fx/fxevent"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// New returns a logger that writes to standard error. Format is json or
// console; level is debug, info, warn or error.
func New(format, level string) (*zap.Logger, error) {
	parsed, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, fmt.Errorf("--log-level %q: use debug, info, warn or error", level)
	}
	var config zap.Config
	switch format {
	case "json":
		config = zap.NewProductionConfig()
		config.EncoderConfig.EncodeTime = zapcore.RFC3339NanoTimeEncoder
		config.Sampling = nil
	case "console":
		config = zap.NewDevelopmentConfig()
		config.Development = false
	default:
		return nil, fmt.Errorf("--log-format %q: use json or console", format)
	}
	config.Level = zap.NewAtomicLevelAt(parsed)
	config.DisableStacktrace = true
	logger, err := config.Build()
	if err != nil {
		return nil, fmt.Errorf("build logger: %w", err)
	}
	return logger, nil
}

// BridgeKlog sends what client-go logs to logger, for the whole process.
func BridgeKlog(logger *zap.Logger) {
	klog.SetLogger(zapr.NewLogger(logger.Named("client-go")))
}

// Fx makes fx report what it wires at debug level.
func Fx(logger *zap.Logger) fxevent.Logger {
	bridge := &fxevent.ZapLogger{Logger: logger.Named("fx")}
	bridge.UseLogLevel(zapcore.DebugLevel)
	bridge.UseErrorLevel(zapcore.DebugLevel) // the error itself is returned and told once, by main
	return bridge
}
