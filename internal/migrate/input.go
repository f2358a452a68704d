package migrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
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
	Unread []ir.Left
}

// manifest is any object of a file; of a Secret no more than its metadata.
type manifest struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Items      []json.RawMessage `json:"items"`
}

// Read adds the policies, Secrets and ConfigMaps of a file with any number of
// YAML documents or lists; other kinds are passed over. What cannot be read is
// in Unread, which never repeats what the file holds; the rest is read all the
// same. Its error is that of raw.
func (in *Input) Read(name string, raw io.Reader) error {
	content, err := io.ReadAll(raw)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	for _, doc := range documents(name, content) {
		values, wrong := doc.values()
		for _, value := range values {
			in.add(doc, nil, value)
		}
		if wrong != nil {
			in.Unread = append(in.Unread, *wrong)
		}
	}
	return nil
}

// add adds the object, or the list of them, that doc has at path.
func (in *Input) add(doc document, path []string, raw json.RawMessage) {
	var read manifest
	err := json.Unmarshal(raw, &read)
	group, _, _ := strings.Cut(read.APIVersion, "/")
	switch {
	case err != nil:
	case strings.HasSuffix(read.Kind, "List"):
		in.addAll(doc, path, strings.TrimSuffix(read.Kind, "List"), read)
	case read.APIVersion == "v1" && (read.Kind == string(object.Secret) || read.Kind == string(object.ConfigMap)):
		in.Objects = append(in.Objects, ir.NewObject(object.Kind(read.Kind), read.Metadata))
	case IsPolicy(group, read.Kind):
		err = in.AddPolicy(group, read.Kind, raw)
	case asksForCopies(raw):
		in.Elsewhere = append(in.Elsewhere, ir.Left{From: kyverno.PolicyName(read.Kind, read.Metadata), Why: otherKind})
	}
	if err != nil {
		in.Unread = append(in.Unread, *doc.misfit(path, err))
	}
}

// otherKind is said of what asks for copies and is no Secret or ConfigMap.
const otherKind = "it holds annotations of Reflector or kubernetes-replicator, and those of Secrets and ConfigMaps alone are carried over. " +
	"Where it makes one, as a Certificate does, run headwater migrate on the cluster; what is of another kind stays with that tool"

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

// addAll adds the items of a list, which need not say what they are.
func (in *Input) addAll(doc document, path []string, kind string, list manifest) {
	for i, item := range list.Items {
		at := append(slices.Clone(path), "items", strconv.Itoa(i))
		var said map[string]json.RawMessage
		if err := json.Unmarshal(item, &said); err != nil {
			in.Unread = append(in.Unread, *doc.misfit(at, err))
			continue
		}
		if _, told := said["kind"]; !told && kind != "" {
			said["kind"], _ = json.Marshal(kind)
			said["apiVersion"], _ = json.Marshal(list.APIVersion)
		}
		whole, _ := json.Marshal(said) // what was JSON is JSON
		in.add(doc, at, whole)
	}
}
