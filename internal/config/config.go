package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"github.com/headwater-k8s/headwater/internal/notify"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/validate"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

// APIVersion and Kind are what every configuration file must say it is.
const (
	APIVersion = "headwater.dev/v1alpha1"
	Kind       = "Config"
)

// Config is the configuration file.
type Config struct {
	APIVersion string               `json:"apiVersion"`
	Kind       string               `json:"kind"`
	Rules      []Rule               `json:"rules,omitzero"`
	Protect    protectspec.Settings `json:"protect"`
	Reload     reloadspec.Settings  `json:"reload"`
	Safety     syncspec.Safety      `json:"safety"`
	// Notify are the receivers of reports.
	Notify []notify.Receiver `json:"notify,omitzero"`

	// Notes are about settings that are valid and probably not intended, sorted by line.
	Notes []Problem `json:"-"`
	// Revision identifies the bytes that the Config was read from; see
	// WatchFrom.
	Revision string `json:"-"`
}

// Rule is a source and what is done with it. An absent section is nil.
type Rule struct {
	Name   string       `json:"name"`
	Source rules.Source `json:"source"`
	// Validate says how the content of the source must look.
	Validate validate.Checks     `json:"validate,omitempty"`
	Sync     *syncspec.Config    `json:"sync,omitempty"`
	Protect  *protectspec.Config `json:"protect,omitempty"`
	Reload   *reloadspec.Config  `json:"reload,omitempty"`
}

// Load is LoadIn where Headwater's own namespace is not known.
func Load(path string) (*Config, error) { return LoadIn("", path) }

// LoadIn reads, checks and defaults the file at path. What is wrong with its
// content comes back as Problems. own is Headwater's namespace.
func LoadIn(own, path string) (*Config, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return ParseIn(own, path, raw)
}

// Parse is ParseIn where Headwater's own namespace is not known.
func Parse(name string, raw []byte) (*Config, error) { return ParseIn("", name, raw) }

// ParseIn checks and defaults the configuration in raw, which came from the file
// called name. What is wrong with it comes back as Problems. own is Headwater's
// namespace, which some notes are about.
func ParseIn(own, name string, raw []byte) (*Config, error) {
	doc, err := readDocument(name, raw)
	if err != nil {
		return nil, err
	}
	config, err := doc.config(own)
	if err != nil {
		return nil, err
	}
	config.Revision = RevisionOf(raw)
	return config, nil
}

// config checks, decodes and defaults the values of d.
func (d *document) config(own string) (*Config, error) {
	if err := checkShape(d); err != nil {
		return nil, err
	}
	config, err := decode(d.root)
	switch {
	case err != nil && len(d.problems) == 0:
		return nil, fmt.Errorf("decode %s: %w", d.file, err)
	case err == nil:
		config.Default()
		checkMeaning(d, config)
	}
	if len(d.problems) > 0 {
		return nil, d.problems.sorted()
	}
	takeNotes(d, config, own)
	config.Notes = d.notes.sorted()
	return config, nil
}

// Default fills in every key that was left out.
func (c *Config) Default() {
	c.Protect.Default()
	c.Reload.Default()
	c.Safety.Default()
	for i := range c.Notify {
		c.Notify[i].Default()
	}
	for _, rule := range c.Rules {
		if rule.Sync != nil {
			if rule.Sync.Delivery != nil && rule.Reload == nil && rule.Sync.Delivery.Gate.Consumers == "" {
				rule.Sync.Delivery.Gate.Consumers = syncspec.GateNone
			}
			rule.Sync.Default()
		}
		if rule.Protect != nil {
			rule.Protect.Default()
		}
		if rule.Reload != nil {
			rule.Reload.Default()
		}
	}
}

// decode takes the values that were checked rather than the file's bytes: a
// second YAML reader may read them differently, such as yes and on.
func decode(root any) (*Config, error) {
	raw, err := json.Marshal(root)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	var config Config
	if err := decoder.Decode(&config); err != nil {
		return nil, err
	}
	return &config, nil
}

// RevisionOf identifies the bytes of a configuration; see Config.Revision.
func RevisionOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
