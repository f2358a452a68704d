package reload

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// secret is a Secret of that name, governed by rule r under action Auto, with
// that data.
func secret(h *digest.Hasher, name string, mode refs.Mode, content reloadtest.Data, keys ...string) decide.Input {
	return decide.Input{
		Reference: refs.Reference{Kind: object.Secret, Name: name, Mode: mode, Keys: keys},
		Object:    object.Ref{Kind: object.Secret, Namespace: "ns", Name: name},
		Rule:      "r", Action: spec.Auto, Exists: true, Digests: reloadtest.Digests(h, content),
	}
}

func together(all ...reloadtest.Notes) (*metav1.ObjectMeta, *optin.ThirdParty, spec.Settings) {
	annotations := reloadtest.Notes{}
	for _, some := range all {
		for key, value := range some {
			annotations[key] = value
		}
	}
	meta, theirs := reloadtest.Saying(annotations, nil)
	return meta, theirs, reloadtest.BothTools()
}

func appInfo(path ...string) *kinds.Info {
	return kinds.WorkloadKind{CustomKind: kinds.CustomKind{Group: "example.com", Version: "v1", Kind: "App"}, Template: strings.Join(path, ".")}.Info()
}
