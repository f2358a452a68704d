package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/bench/measure"
	"github.com/headwater-k8s/headwater/test/cluster"
)

// sized is the source whose payload grows.
const sized = "sized"

// payloads measures sources of growing size, each cloned to every namespace:
// what a change takes, and what is held. What clones take is per clone.
func (y *yard) payloads(ctx context.Context) error {
	if err := y.start(ctx, y.Run); err != nil {
		return err
	}
	if err := measure.Create(ctx, y.Admin, source(sized, usualPayload)); err != nil {
		return err
	}
	if err := y.idle(ctx); err != nil {
		return err
	}
	for _, size := range y.options.payloads {
		// The first change makes the clones as large; the second one is measured.
		if _, err := y.changeSized(size)(ctx, y.Cluster.Mark()); err != nil {
			return err
		}
		if err := y.idle(ctx); err != nil {
			return err
		}
		took, err := y.spend(ctx, y.changeSized(size))
		if err != nil {
			return err
		}
		for of := range took {
			took[of] /= float64(y.options.namespaces)
		}
		y.book(perByte, size, took)
		if err := y.heldSized(ctx, size); err != nil {
			return err
		}
	}
	return y.Admin.CoreV1().Secrets(sourceNamespace).Delete(ctx, sized, metav1.DeleteOptions{})
}

// changeSized gives the source so many other bytes and waits until every clone
// has them.
func (y *yard) changeSized(size int) func(context.Context, cluster.Mark) (time.Time, error) {
	return func(ctx context.Context, mark cluster.Mark) (time.Time, error) {
		if err := measure.Update(ctx, y.Admin, source(sized, size)); err != nil {
			return time.Time{}, err
		}
		return y.written(ctx, mark, "secrets", y.options.namespaces)
	}
}

// heldSized adds what is held at that size to the model.
func (y *yard) heldSized(ctx context.Context, size int) error {
	s, _, read, err := y.stand(ctx)
	if err != nil {
		return err
	}
	if s.resident, err = y.peak(ctx); err != nil {
		return err
	}
	n := float64(y.options.namespaces)
	for of, value := range map[quantity]float64{
		heap: s.heap, resident: s.resident, apiHeap: s.apiHeap / n, etcdSize: s.etcd / n, startRead: read / n,
	} {
		y.model.add(perByte, of, float64(size), value)
	}
	progress("a payload of %s: heap %s, peak %s, API server's heap %s, etcd %s",
		bytes(float64(size)), bytes(s.heap), bytes(s.resident), bytes(s.apiHeap), bytes(s.etcd))
	return nil
}
