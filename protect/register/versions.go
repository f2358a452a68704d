package register

import (
	"context"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/configmap"
)

// RegisteredConfigMap holds what is registered, in Headwater's own namespace.
const RegisteredConfigMap = "headwater-registered"

// Versions notes which objects are registered, and in which version. By it a
// leader knows what somebody did while nobody led from what is due because
// Headwater or its rules have changed. One goroutine uses it.
type Versions struct {
	Store    configmap.Store
	recalled bool
	// noted holds for each object its version and its owner; stored is what the
	// ConfigMap has of it.
	observed, stored map[string]string
}

func entryOf(kind, name string) string { return kind + "." + name }

// versionOf changes with the specification alone: labels and field managers are
// everybody's.
func versionOf(object metav1.Object) string {
	return fmt.Sprintf("%s/%d", object.GetUID(), object.GetGeneration())
}

func ownerOf(object metav1.Object) string {
	for _, owner := range object.GetOwnerReferences() {
		return string(owner.UID)
	}
	return "nobody"
}

// note has it that live is as it should be.
func (l *Versions) note(kind string, live metav1.Object) {
	l.observed[entryOf(kind, live.GetName())] = versionOf(live) + " " + ownerOf(live)
}

func (l *Versions) forget(kind, name string) { delete(l.observed, entryOf(kind, name)) }

// deleted reports whether desired was there before and is not any more. What
// belonged to another owner went with that.
func (l *Versions) deleted(kind string, desired metav1.Object) bool {
	_, owner, _ := strings.Cut(l.observed[entryOf(kind, desired.GetName())], " ")
	return owner == ownerOf(desired)
}

// changed reports whether found is not what was noted of it.
func (l *Versions) changed(kind string, found metav1.Object) bool {
	version, _, noted := strings.Cut(l.observed[entryOf(kind, found.GetName())], " ")
	return noted && version != versionOf(found)
}

// recall reads what an earlier leader has noted, once. Without the permission it
// has noted nothing.
func (l *Versions) recall(ctx context.Context) error {
	if l.recalled {
		return nil
	}
	stored, err := l.Store.Read(ctx)
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	l.observed, l.stored, l.recalled = map[string]string{}, map[string]string{}, true
	maps.Copy(l.observed, stored)
	maps.Copy(l.stored, stored)
	return nil
}

// record writes what is noted where that differs from what is stored.
func (l *Versions) record(ctx context.Context) error {
	if maps.Equal(l.observed, l.stored) {
		return nil
	}
	noted := maps.Clone(l.observed)
	if err := l.Store.Write(ctx, noted); err != nil {
		return err
	}
	l.stored = noted
	return nil
}
