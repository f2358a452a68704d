package migrate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/migrate/annotations"
	"github.com/headwater-k8s/headwater/internal/migrate/ir"
	"github.com/headwater-k8s/headwater/internal/migrate/kyverno"
	"github.com/headwater-k8s/headwater/internal/object"
)

// Input is what there is to translate.
type Input struct {
	Objects     []ir.Object
	Policies    []kyverno.Policy
	CELPolicies []kyverno.CELPolicy
	Exceptions  []kyverno.PolicyException
	// Elsewhere are objects of other kinds that ask Reflector or
	// kubernetes-replicator for something.
	Elsewhere []ir.Left
	// Unread is what could not be read.
	Unread []ir.Unread
}

// manifest is any object of a file; of a Secret no more than its metadata.
type manifest struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Items      []json.RawMessage `json:"items"`
}

// Read adds the policies, Secrets and ConfigMaps of a file with any number of
// YAML documents or lists; other kinds are passed over. A document that names one
// of the tools and cannot be read is in Unread, which never repeats what the file
// holds; the rest is read all the same. Its error is that of raw.
func (in *Input) Read(name string, raw io.Reader) error {
	content, err := io.ReadAll(raw)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	for _, doc := range documents(name, content) {
		values, wrong := doc.values()
		for _, value := range values {
			in.add(doc, value)
		}
		in.unreadable(doc, wrong)
	}
	return nil
}

// add adds the object of doc, or the list of them.
func (in *Input) add(doc document, raw json.RawMessage) {
	var read manifest
	err := json.Unmarshal(raw, &read)
	group, _, _ := strings.Cut(read.APIVersion, "/")
	switch {
	case err != nil:
	case strings.HasSuffix(read.Kind, "List"):
		in.addAll(doc, strings.TrimSuffix(read.Kind, "List"), read)
	case read.APIVersion == "v1" && (read.Kind == string(object.Secret) || read.Kind == string(object.ConfigMap)):
		in.Objects = append(in.Objects, ir.NewObject(object.Kind(read.Kind), read.Metadata))
	case IsPolicy(group, read.Kind):
		err = in.AddPolicy(group, read.Kind, raw)
	case asksForCopies(raw):
		if made, is := madeBy(group, read, raw); is {
			in.Objects = append(in.Objects, made)
			break
		}
		in.Elsewhere = append(in.Elsewhere, ir.Left{From: kyverno.PolicyName(read.Kind, read.Metadata), Why: ir.Because(ir.OtherKind)})
	}
	if err != nil {
		in.unreadable(doc, doc.misfit(err))
	}
}

// unreadable adds what cannot be read of doc, unless it is none of what is
// translated: a repository has playbooks and settings of other programs, too.
func (in *Input) unreadable(doc document, wrong *ir.Unread) {
	if wrong != nil && (bytes.Contains(doc.raw, []byte(kyverno.KyvernoGroup)) || asksForCopies(doc.raw)) {
		in.Unread = append(in.Unread, *wrong)
	}
}

// madeBy is the Secret that an object of another kind makes, with the annotations
// that it gives it.
func madeBy(group string, of manifest, raw []byte) (ir.Object, bool) {
	type metadata struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	var maker struct {
		Spec struct {
			SecretName     string            `json:"secretName"`
			SecretTemplate metav1.ObjectMeta `json:"secretTemplate"`
			Template       metadata          `json:"template"`
			Target         struct {
				Name     string   `json:"name"`
				Template metadata `json:"template"`
			} `json:"target"`
		} `json:"spec"`
	}
	if json.Unmarshal(raw, &maker) != nil {
		return ir.Object{}, false
	}
	spec, name, given := maker.Spec, of.Metadata.Name, metav1.ObjectMeta{}
	switch group + "/" + of.Kind {
	case "cert-manager.io/Certificate":
		name, given = spec.SecretName, spec.SecretTemplate
	case "external-secrets.io/ExternalSecret":
		name, given = cmp.Or(spec.Target.Name, name), spec.Target.Template.Metadata
	case "bitnami.com/SealedSecret":
		given = spec.Template.Metadata
	}
	made := ir.NewObject(object.Secret, metav1.ObjectMeta{Namespace: of.Metadata.Namespace, Name: name, Labels: given.Labels, Annotations: given.Annotations})
	made.Maker = kyverno.PolicyName(of.Kind, of.Metadata)
	return made, annotations.Asks(made)
}

func asksForCopies(raw []byte) bool {
	return bytes.Contains(raw, []byte(annotations.ReflectorPrefix)) || bytes.Contains(raw, []byte(annotations.ReplicatorPrefix))
}

// IsPolicy reports whether objects of that group and kind are policies of
// Kyverno's that may be translated, or exceptions to them.
func IsPolicy(group, kind string) bool {
	switch group {
	case kyverno.KyvernoGroup:
		return kind == kyverno.ClusterPolicyKind || kind == kyverno.PolicyKind || kind == kyverno.ExceptionKind
	case kyverno.KyvernoCELGroup:
		return kyverno.IsCELPolicy(kind) || kind == kyverno.ExceptionKind
	default:
		return false
	}
}

// AddPolicy adds raw, an object of that group and kind, if it is a policy.
func (in *Input) AddPolicy(group, kind string, raw []byte) (err error) {
	switch {
	case !IsPolicy(group, kind):
		return nil
	case kind == kyverno.ExceptionKind:
		in.Exceptions, err = decoded(in.Exceptions, raw)
	case group == kyverno.KyvernoGroup:
		in.Policies, err = decoded(in.Policies, raw)
	default:
		in.CELPolicies, err = decoded(in.CELPolicies, raw)
	}
	return err
}

func decoded[P any](policies []P, raw []byte) ([]P, error) {
	var policy P
	if err := json.Unmarshal(raw, &policy); err != nil {
		return policies, err
	}
	return append(policies, policy), nil
}

// maxNested is how deep lists may be nested, because each list is decoded again for
// each list around it.
const maxNested = 8

// addAll adds the items of a list, which need not say what they are.
func (in *Input) addAll(doc document, kind string, list manifest) {
	if doc.nested++; doc.nested > maxNested {
		in.unreadable(doc, doc.fault(doc.line, "lists are nested too deeply; write one list"))
		return
	}
	for _, item := range list.Items {
		var said map[string]json.RawMessage
		if err := json.Unmarshal(item, &said); err != nil {
			in.unreadable(doc, doc.misfit(err))
			continue
		}
		if _, told := said["kind"]; !told && kind != "" {
			said["kind"], _ = json.Marshal(kind)
			said["apiVersion"], _ = json.Marshal(list.APIVersion)
		}
		whole, _ := json.Marshal(said) // what was JSON is JSON
		in.add(doc, whole)
	}
}
