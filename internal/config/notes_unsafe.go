package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/notify"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// noteSource reports a source in a namespace from which sync refuses to clone.
func noteSource(doc *document, at *field.Path, source rules.Source, own string) {
	switch {
	case source.Namespace == metav1.NamespaceSystem && !source.AllowSystemNamespace:
		doc.note(at, "the rule clones nothing: a source in kube-system is cloned only with allowSystemNamespace: true beside it")
	case own != "" && source.Namespace == own:
		doc.note(at, "the rule clones nothing: this is Headwater's own namespace, whose keys and certificates must not leave it; move the source to another namespace")
	}
}

// noteReceivers reports URLs that send a password in clear text.
func noteReceivers(doc *document, receivers []notify.Receiver) {
	for i, receiver := range receivers {
		if receiver.SendsPasswordInClear() {
			doc.note(field.NewPath("notify").Index(i).Child("url"), "sends the password of the URL without encryption; write https://")
		}
	}
}
