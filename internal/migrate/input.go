package migrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// Input is what there is to translate.
type Input struct {
	Objects  []Object
	Policies []Policy
}

// Object is a Secret or ConfigMap without what it holds.
type Object struct {
	object.Ref
	Labels      map[string]string
	Annotations map[string]string
}

// NewObject takes what is needed of an object's metadata.
func NewObject(kind object.Kind, meta metav1.ObjectMeta) Object {
	return Object{
		Ref:    object.Ref{Kind: kind, Namespace: meta.Namespace, Name: meta.Name},
		Labels: meta.Labels, Annotations: meta.Annotations,
	}
}

// isClone reports whether a tool, or Headwater, made the object.
func (o Object) isClone() bool {
	_, kyverno := o.Labels["generate.kyverno.io/policy-name"]
	return kyverno || o.Labels[mark.CloneLabel] == "true" || isTrue(o.Annotations[reflectorAuto])
}

// manifest is any object of a file; of a Secret no more than its metadata.
type manifest struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Items      []json.RawMessage `json:"items"`
}

// Read adds the policies, Secrets and ConfigMaps of a file with any number of
// YAML documents or lists; other kinds are passed over. Its errors never repeat
// what the file holds.
func (in *Input) Read(name string, raw io.Reader) error {
	content, err := io.ReadAll(raw)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for i := 1; ; i++ {
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && len(document) > 0 {
			err = in.add(document)
		}
		if err != nil {
			return fmt.Errorf("read %s: document %d is no object of Kubernetes: mend its YAML, or take it out", name, i)
		}
	}
}

func (in *Input) add(document json.RawMessage) error {
	var read manifest
	if err := json.Unmarshal(document, &read); err != nil {
		return err
	}
	group, _, _ := strings.Cut(read.APIVersion, "/")
	switch {
	case strings.HasSuffix(read.Kind, "List"):
		return in.addAll(strings.TrimSuffix(read.Kind, "List"), read)
	case read.APIVersion == "v1" && (read.Kind == string(object.Secret) || read.Kind == string(object.ConfigMap)):
		in.Objects = append(in.Objects, NewObject(object.Kind(read.Kind), read.Metadata))
	case group == KyvernoGroup && (read.Kind == ClusterPolicyKind || read.Kind == PolicyKind):
		var policy Policy
		if err := json.Unmarshal(document, &policy); err != nil {
			return err
		}
		in.Policies = append(in.Policies, policy)
	}
	return nil
}

// addAll adds the items of a list, which need not say what they are.
func (in *Input) addAll(kind string, list manifest) error {
	for _, item := range list.Items {
		var said map[string]json.RawMessage
		if err := json.Unmarshal(item, &said); err != nil {
			return err
		}
		if _, told := said["kind"]; !told && kind != "" {
			said["kind"], _ = json.Marshal(kind)
			said["apiVersion"], _ = json.Marshal(list.APIVersion)
		}
		whole, err := json.Marshal(said)
		if err != nil {
			return err
		}
		if err := in.add(whole); err != nil {
			return err
		}
	}
	return nil
}

func isTrue(annotation string) bool { return strings.EqualFold(strings.TrimSpace(annotation), "true") }
