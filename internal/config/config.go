package config

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/headwater-k8s/headwater/internal/bounds"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/notify"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/stages"
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
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Rules      []Rule `json:"rules,omitzero"`
	// RemovedRules names rules that are gone on purpose; see Held.
	RemovedRules []string             `json:"removedRules,omitzero"`
	Protect      protectspec.Settings `json:"protect"`
	Reload       reloadspec.Settings  `json:"reload"`
	Safety       syncspec.Safety      `json:"safety"`
	// Notify are the receivers of reports.
	Notify []notify.Receiver `json:"notify,omitzero"`

	// Notes are about settings that are valid and probably not intended, sorted by line.
	Notes []Problem `json:"-"`
	// SecretUses is what needs Secrets outside Headwater's own namespace.
	SecretUses Problems `json:"-"`
	// Text is what the Config was read from, and Revision identifies it; see RevisionOf.
	// The text may hold tokens.
	Text     []byte `json:"-"`
	Revision string `json:"-"`
}

// Rule is a source and what is done with it. An absent section is nil.
type Rule struct {
	Name   string       `json:"name"`
	Source rules.Source `json:"source"`
	// Suspend is rules.Base.Suspended.
	Suspend bool `json:"suspend"`
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
	raw, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return ParseIn(own, path, raw)
}

// readFile reads as much of the file at path as shows that it is too large.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, bounds.MaxBytes+1))
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
	config.Text, config.Revision = raw, RevisionOf(raw)
	return config, nil
}

// config checks, decodes and defaults the values of d.
func (d *document) config(own string) (*Config, error) {
	if err := checkShape(d); err != nil {
		return nil, err
	}
	if d.isFull() {
		return nil, d.faults()
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
		return nil, d.faults()
	}
	takeNotes(d, config, own)
	config.Notes = d.notes.sorted()
	config.SecretUses = secretUses(d, config).sorted()
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
				rule.Sync.Delivery.Gate.Consumers = stages.GateNone
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

// IsRevision reports whether text has the form of a revision.
func IsRevision(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == revisionBytes
}

const revisionBytes = 8

// RevisionOf identifies the bytes of a configuration; see Config.Revision.
func RevisionOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:revisionBytes])
}

// Sets are the rules as each module sees them.
type Sets struct {
	// Bases are those of all rules, in the file's order.
	Bases   []rules.Base
	Sync    *rules.Set[syncspec.Rule]
	Protect *rules.Set[protectspec.Rule]
	Reload  *rules.Set[reloadspec.Rule]
}

// Compile prepares the rules of a Config that Load or Parse returned.
// ownNamespace is Headwater's own; nothing is ever cloned into it.
func (c *Config) Compile(ownNamespace string) (Sets, error) {
	var (
		bases    []rules.Base
		syncs    []syncspec.Rule
		protects []protectspec.Rule
		reloads  []reloadspec.Rule
	)
	for _, rule := range c.Rules {
		base, err := rules.NewBase(rule.Name, rule.Source)
		if err != nil {
			return Sets{}, err
		}
		if base.Validator, err = validate.Compile(rule.Validate); err != nil {
			return Sets{}, fmt.Errorf("rule %s: %w", rule.Name, err)
		}
		base.Suspended = rule.Suspend
		bases = append(bases, base)
		if rule.Sync != nil {
			compiled, err := syncspec.Compile(base, *rule.Sync, ownNamespace)
			if err != nil {
				return Sets{}, err
			}
			syncs = append(syncs, compiled)
		}
		if rule.Protect != nil {
			compiled := protectspec.Rule{Base: base, Config: *rule.Protect}
			if rule.Sync != nil {
				compiled.Copied = protectspec.Copied{Labels: rule.Sync.Target.CopyLabels, Annotations: rule.Sync.Target.CopyAnnotations}
			}
			protects = append(protects, compiled)
		}
		if rule.Reload != nil {
			compiled, err := reloadspec.Compile(base, *rule.Reload)
			if err != nil {
				return Sets{}, err
			}
			if rule.Sync != nil {
				compiled = compiled.ClonedAs(rule.Sync.Target.Name, syncs[len(syncs)-1].Into())
				compiled.Stages = syncs[len(syncs)-1].Stages
				syncs[len(syncs)-1].ReloadAction = compiled.CommonAction()
				for _, key := range rule.Sync.Target.Keys {
					compiled.CloneKeys = append(compiled.CloneKeys, reloadspec.CloneKey{From: key.From, To: key.Target()})
				}
			}
			reloads = append(reloads, compiled)
		}
	}
	return Sets{
		Bases:   bases,
		Sync:    rules.NewSet(syncs...),
		Protect: rules.NewSet(protects...),
		Reload:  rules.NewSet(reloads...),
	}, nil
}

// Places lists where the sources of all rules live, each place once, sorted.
func (s Sets) Places() []informers.Place {
	places := slices.Concat(placesOf(s.Sync), placesOf(s.Protect), placesOf(s.Reload))
	slices.SortFunc(places, func(a, b informers.Place) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind))
	})
	return slices.Compact(places)
}

func placesOf[R rules.Rule](set *rules.Set[R]) []informers.Place {
	var places []informers.Place
	for _, rule := range set.All() {
		source := rule.RuleBase().Source
		places = append(places, informers.Place{Kind: source.Kind, Namespace: source.Namespace})
	}
	return places
}
