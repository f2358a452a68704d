package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// grown measures what is held as the number of something grows.
func (y *yard) grown(ctx context.Context, per driver, steps []int, add func(context.Context, int) error) error {
	have := 0
	for _, step := range steps {
		from := have
		if err := parallel(ctx, step-from, func(ctx context.Context, i int) error { return add(ctx, from+i) }); err != nil {
			return err
		}
		have = step
		if err := y.held(ctx, per, step); err != nil {
			return err
		}
	}
	return nil
}

// rootCAEvery is how often a namespace is asked for what the control plane puts
// into it.
const rootCAEvery = 200 * time.Millisecond

// namespaces measures namespaces that no rule selects, with what the control
// plane puts into each, beside one source. The clones of the others stay.
func (y *yard) namespaces(ctx context.Context) error {
	for _, name := range y.sources {
		if err := y.Admin.CoreV1().Secrets(sourceNamespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return y.grown(ctx, perNamespace, y.options.steps, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("cost-none-%05d", i)
		if err := y.Namespaces(ctx, name); err != nil {
			return err
		}
		return wait.PollUntilContextTimeout(ctx, rootCAEvery, patience, false, func(ctx context.Context) (bool, error) {
			_, err := y.Admin.CoreV1().ConfigMaps(name).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return err == nil, err
		})
	})
}

// others measures Secrets that are not Headwater's.
func (y *yard) others(ctx context.Context) error {
	return y.grown(ctx, perSecret, y.options.secrets, func(ctx context.Context, i int) error {
		return measure.Create(ctx, y.Admin, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: otherNamespace, Name: fmt.Sprintf("other-%05d", i)},
			Data:       map[string][]byte{"payload": make([]byte, usualPayload)},
		})
	})
}

// consumers measures Deployments that read a clone from their environment, and
// what it takes to restart them. They are paused and without replicas: what
// the control plane makes of a rollout is no part of the measure.
func (y *yard) consumers(ctx context.Context) error {
	name, have := y.sources[0], 0
	for _, step := range y.options.steps {
		err := parallel(ctx, step-have, func(ctx context.Context, i int) error {
			deployment := consumer(target((have+i)%y.options.namespaces), fmt.Sprintf("reads-%05d", have+i), name)
			_, err := y.Admin.AppsV1().Deployments(deployment.Namespace).Create(ctx, deployment, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return err
		}
		have = step
		// What they run is put on record now, and not by the start that is measured.
		if err := y.idle(ctx); err != nil {
			return err
		}
		if err := y.held(ctx, perConsumer, step); err != nil {
			return err
		}
		took, err := y.spend(ctx, func(ctx context.Context, mark cluster.Mark) (time.Time, error) {
			if err := measure.Update(ctx, y.Admin, source(name, usualPayload)); err != nil {
				return time.Time{}, err
			}
			if have == 0 {
				return y.written(ctx, mark, "secrets", y.options.namespaces)
			}
			return y.written(ctx, mark, "deployments", have)
		})
		if err != nil {
			return err
		}
		y.book(perRestart, step, took)
	}
	return nil
}

func consumer(namespace, name, of string) *appsv1.Deployment {
	deployment := lab.Deployment(namespace, name, 0, lab.ByEnv(of, "payload"))
	deployment.Spec.Paused = true
	return deployment
}

// ruleSets measures rules whose source is not there.
func (y *yard) ruleSets(ctx context.Context) error {
	for _, step := range y.options.rules {
		var more strings.Builder
		for i := range step {
			_, _ = fmt.Fprintf(&more, "- name: none-%d\n  source: {kind: Secret, namespace: %s, name: none-%d}\n  sync: {namespaces: {include: [\"%s*\"]}}\n  reload: {}\n",
				i, sourceNamespace, i, targets)
		}
		if err := y.setRules(ctx, more.String()); err != nil {
			return err
		}
		if err := y.held(ctx, perRule, step); err != nil {
			return err
		}
	}
	return y.setRules(ctx, "")
}
