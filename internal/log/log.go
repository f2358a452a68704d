// Package log builds the logger of the process and routes the logs of client-go
// to it.
package log

import (
	"fmt"
	"slices"

	"github.com/go-logr/zapr"
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
	logger, err := config.Build(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return fieldCore{core, filledFields} }))
	if err != nil {
		return nil, fmt.Errorf("build logger: %w", err)
	}
	return logger, nil
}

// BridgeKlog sends the logs of client-go to logger, for the whole process.
// client-go attaches whole objects to some errors, including Secrets, so a
// structured value is replaced by its type.
func BridgeKlog(logger *zap.Logger) {
	plain := logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return fieldCore{core, plainFields} }))
	klog.SetLogger(zapr.NewLogger(plain.Named("client-go")))
}

// fieldCore applies change to the fields of each entry.
type fieldCore struct {
	zapcore.Core

	change func([]zapcore.Field) []zapcore.Field
}

// With implements zapcore.Core.
func (c fieldCore) With(fields []zapcore.Field) zapcore.Core {
	return fieldCore{c.Core.With(c.change(fields)), c.change}
}

// Check implements zapcore.Core.
func (c fieldCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

// Write implements zapcore.Core.
func (c fieldCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	return c.Core.Write(entry, c.change(fields))
}

// filledFields drops empty strings, such as the rule of an entry that concerns
// no rule.
func filledFields(fields []zapcore.Field) []zapcore.Field {
	empty := func(f zapcore.Field) bool { return f.Type == zapcore.StringType && f.String == "" }
	return slices.DeleteFunc(slices.Clone(fields), empty)
}

// plainFields replaces structured values by the names of their types.
func plainFields(fields []zapcore.Field) []zapcore.Field {
	plain := make([]zapcore.Field, len(fields))
	for i, field := range fields {
		plain[i] = field
		switch field.Type {
		case zapcore.ReflectType, zapcore.StringerType, zapcore.ObjectMarshalerType,
			zapcore.InlineMarshalerType, zapcore.ArrayMarshalerType:
			if _, isName := field.Interface.(klog.ObjectRef); !isName {
				plain[i] = zap.String(field.Key, fmt.Sprintf("(%T)", field.Interface))
			}
		default:
		}
	}
	return plain
}
