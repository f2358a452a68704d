package main

import (
	"context"
	"fmt"
	"time"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/process"
)

// standing is what is held, at rest.
type standing struct{ heap, resident, apiHeap, etcd, scrape float64 }

// stand measures what is held: of Headwater after two fresh starts, one for the
// heap and one for what is resident; of etcd without old editions. It returns
// what the first start asked for as well.
func (y *yard) stand(ctx context.Context) (s standing, asks, read float64, err error) {
	mark := y.Cluster.Mark()
	_, before := y.proxy.Passed()
	if err := y.start(ctx, y.metered()); err != nil {
		return s, 0, 0, err
	}
	_, after := y.proxy.Passed()
	requests, err := y.asked(ctx, mark, every)
	if err != nil {
		return s, 0, 0, err
	}
	asks, read = float64(len(requests)), float64(after-before)
	body, err := y.headwater.Metrics(ctx)
	if err != nil {
		return s, 0, 0, err
	}
	s.scrape = float64(len(body))
	// The next collection is due at what the last one left, and closeGC more.
	next, err := lab.SumOf(body, "go_memstats_next_gc_bytes", nil)
	if err != nil {
		return s, 0, 0, err
	}
	s.heap = next / (1 + closeGC/100.0)
	if s.apiHeap, err = y.apiServerHeap(ctx); err != nil {
		return s, 0, 0, err
	}
	if s.etcd, err = y.compacted(ctx); err != nil {
		return s, 0, 0, err
	}
	return s, asks, read, nil
}

// peak starts Headwater as it runs by default, and returns the most that was
// resident of it.
func (y *yard) peak(ctx context.Context) (float64, error) {
	if err := y.start(ctx, y.Run); err != nil {
		return 0, err
	}
	n, err := process.MemoryBytes(y.headwater.PID(), process.Peak)
	return float64(n), err
}

// held adds what is held at x of a driver to the model. Headwater runs as it
// does by default afterwards.
func (y *yard) held(ctx context.Context, per driver, x int) error {
	s, asks, read, err := y.stand(ctx)
	if err != nil {
		return err
	}
	if s.resident, err = y.peak(ctx); err != nil {
		return err
	}
	at := float64(x)
	for of, value := range map[quantity]float64{heap: s.heap, resident: s.resident, apiHeap: s.apiHeap, etcdSize: s.etcd, startAsks: asks, startRead: read, scrape: s.scrape} {
		y.model.add(per, of, at, value)
	}
	progress("%d × %s: heap %s, peak %s, API server's heap %s, etcd %s; a start reads %s in %v requests",
		x, per, bytes(s.heap), bytes(s.resident), bytes(s.apiHeap), bytes(s.etcd), bytes(read), asks)
	return nil
}

// apiServerHeap is what lives in the API server.
func (y *yard) apiServerHeap(ctx context.Context) (float64, error) {
	client := y.Admin.Discovery().RESTClient()
	// Twice, since what has a finalizer lives for one collection more.
	for range 2 {
		if _, err := client.Get().AbsPath("/debug/pprof/heap").Param("gc", "1").DoRaw(ctx); err != nil {
			return 0, fmt.Errorf("have the API server collect its garbage: %w", err)
		}
	}
	body, err := client.Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the API server's metrics: %w", err)
	}
	return lab.SumOf(string(body), "go_memstats_heap_alloc_bytes", nil)
}

// compacted is how much of etcd's database is in use without old editions.
func (y *yard) compacted(ctx context.Context) (float64, error) {
	if err := y.Cluster.CompactEtcd(ctx); err != nil {
		return 0, err
	}
	return y.etcdInUse(ctx)
}

// etcdSettles is for how long etcd's figure must stay: it is of the last
// commit, and one is due every 100 ms. Controllers may be at work for a while
// before that.
const (
	etcdSettles       = 300 * time.Millisecond
	etcdSettlesWithin = 5 * time.Minute
)

func (y *yard) etcdInUse(ctx context.Context) (size float64, err error) {
	since := time.Now()
	err = lab.Within(ctx, etcdSettlesWithin, func(ctx context.Context) error {
		now, err := y.etcdMetric(ctx, "etcd_mvcc_db_total_size_in_use_in_bytes")
		if err != nil {
			return lab.Permanent(err)
		}
		if now != size {
			size, since = now, time.Now()
		}
		return lab.ErrorIf(time.Since(since) < etcdSettles, "the size of etcd's database changes")
	})
	return size, err
}

func (y *yard) etcdMetric(ctx context.Context, name string) (float64, error) {
	body, err := y.Cluster.EtcdMetrics(ctx)
	if err != nil {
		return 0, err
	}
	return lab.SumOf(body, name, nil)
}

// spent is what work took.
type spent map[quantity]float64

// spend measures what happens from now until done, whose moment it returns for
// the time; the processes' CPU time is that until Headwater is idle again.
func (y *yard) spend(ctx context.Context, do func(context.Context, cluster.Mark) (time.Time, error)) (spent, error) {
	size, err := y.compacted(ctx)
	if err != nil {
		return nil, err
	}
	log, err := y.etcdMetric(ctx, "etcd_disk_wal_write_bytes_total")
	if err != nil {
		return nil, err
	}
	before, err := y.cpus()
	if err != nil {
		return nil, err
	}
	mark, began := y.Cluster.Mark(), time.Now()
	last, err := do(ctx, mark)
	if err != nil {
		return nil, err
	}
	after, err := y.cpus()
	if err != nil {
		return nil, err
	}
	s := spent{wall: last.Sub(began).Seconds()}
	for of := range after {
		s[of] = (after[of] - before[of]).Seconds()
	}
	asked, err := y.asked(ctx, mark, every)
	if err != nil {
		return nil, err
	}
	s[requests] = float64(len(asked))
	inUse, err := y.etcdInUse(ctx)
	if err != nil {
		return nil, err
	}
	logged, err := y.etcdMetric(ctx, "etcd_disk_wal_write_bytes_total")
	s[revision], s[wal] = inUse-size, logged-log
	return s, err
}

// cpus are the CPU times of the processes so far.
func (y *yard) cpus() (map[quantity]time.Duration, error) {
	pids := y.Cluster.PIDs()
	all := map[quantity]time.Duration{}
	for of, pid := range map[quantity]int{ownCPU: y.headwater.PID(), apiCPU: pids[cluster.APIServer], etcdCPU: pids[cluster.Etcd]} {
		took, err := process.CPUTime(pid)
		if err != nil {
			return nil, err
		}
		all[of] = took
	}
	return all, nil
}

// book adds what was spent on x of a driver to the model.
func (y *yard) book(per driver, x int, s spent) {
	for _, of := range []quantity{ownCPU, apiCPU, etcdCPU, wall, requests, revision, wal, received, sent} {
		if value, measured := s[of]; measured {
			y.model.add(per, of, float64(x), value)
		}
	}
	progress("%d × %s: %s, CPU of Headwater %s, API server %s, etcd %s; %v requests", x, per,
		seconds(s[wall]), seconds(s[ownCPU]), seconds(s[apiCPU]), seconds(s[etcdCPU]), s[requests])
}
