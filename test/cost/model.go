package main

// driver is what there can be one more of.
type driver string

// quantity is what that costs, per unit.
type quantity string

const (
	perClone     driver = "clone"
	perNamespace driver = "namespace"
	perSecret    driver = "other Secret"
	perConsumer  driver = "consumer"
	perRule      driver = "rule"
	perSync      driver = "clone, at its first sync"
	perWrite     driver = "clone written"
	perRestart   driver = "consumer restarted"
	perJudged    driver = "protected write"
	perBare      driver = "unprotected write"
	// perByte counts the payload of one source, in bytes; of what many clones
	// take, it is per clone.
	perByte driver = "byte of payload"

	heap     quantity = "Headwater, live heap"
	resident quantity = "Headwater, peak resident after a start"
	apiHeap  quantity = "API server, live heap"
	etcdSize quantity = "etcd, in use after compaction"

	ownCPU    quantity = "Headwater, CPU"
	apiCPU    quantity = "API server, CPU"
	etcdCPU   quantity = "etcd, CPU"
	wall      quantity = "time"
	requests  quantity = "requests"
	revision  quantity = "etcd, until the next compaction"
	wal       quantity = "etcd, write-ahead log"
	received  quantity = "on the wire to Headwater"
	sent      quantity = "on the wire from Headwater"
	startRead quantity = "on the wire to Headwater, at a start"
	startAsks quantity = "requests at a start"
	scrape    quantity = "Headwater, size of /metrics"
)

// unit is how a quantity is told.
type unit int

const (
	inBytes unit = iota
	inSeconds
	inNumber
)

func unitOf(q quantity) unit {
	switch q {
	case ownCPU, apiCPU, etcdCPU, wall:
		return inSeconds
	case requests, startAsks:
		return inNumber
	default:
		return inBytes
	}
}

// entry is one line of the model: how a quantity goes with a driver.
type entry struct {
	per driver
	of  quantity
}

// model holds what was measured, in the order of measuring.
type model struct {
	order  []entry
	points map[entry][]point
}

func newModel() *model { return &model{points: map[entry][]point{}} }

func (m *model) add(per driver, of quantity, x, y float64) {
	e := entry{per, of}
	if _, known := m.points[e]; !known {
		m.order = append(m.order, e)
	}
	m.points[e] = append(m.points[e], point{x, y})
}

func (m *model) line(per driver, of quantity) line { return fit(m.points[entry{per, of}]) }

// slope is what one more costs; never below zero, which noise may show of what
// costs nothing.
func (m *model) slope(per driver, of quantity) float64 { return max(0, m.line(per, of).slope) }

// usualPayload is that of the clones by which all but perByte is measured.
const usualPayload = 1024

// scenario is a cluster to foretell the cost of.
type scenario struct {
	what                string
	sources, namespaces float64
	payload             float64 // of one source, in bytes
}

func (s scenario) clones() float64 { return s.sources * s.namespaces }

// forecast is what a scenario comes to. Bytes and seconds; a change is the edit
// of one source.
type forecast struct {
	scenario scenario
	// heap lives in Headwater, resident is its peak; apiHeap lives in the API
	// server, whose process may take twice that before it collects.
	heap, resident, apiHeap, apiResident float64
	// etcd is in use when compacted; each change adds until the next compaction.
	etcd, change float64
	// ownCPU, apiCPU and wall are of one change.
	ownCPU, apiCPU, wall float64
}

// apiGrowth is how far a Go process that nobody tells otherwise lets its heap
// grow beyond what lives: GOGC=100.
const apiGrowth = 2

// foretell asks the lines.
func (m *model) foretell(s scenario) forecast {
	beyond := s.payload - usualPayload
	standing := func(of quantity) float64 {
		return m.line(perClone, of).base + m.slope(perClone, of)*s.clones() + m.slope(perNamespace, of)*s.namespaces
	}
	each := func(of quantity) float64 {
		return max(0, m.slope(perWrite, of)+m.slope(perByte, of)*beyond) * s.namespaces
	}
	f := forecast{scenario: s}
	// Of a clone, only digests are kept; a source is kept whole.
	f.heap = standing(heap) + m.slope(perByte, heap)*beyond*s.sources
	f.resident = standing(resident) + m.slope(perByte, resident)*beyond*s.sources
	f.apiHeap = standing(apiHeap) + m.slope(perByte, apiHeap)*beyond*s.clones()
	f.apiResident = apiGrowth * f.apiHeap
	f.etcd = standing(etcdSize) + m.slope(perByte, etcdSize)*beyond*s.clones()
	f.change = each(revision)
	f.ownCPU, f.apiCPU, f.wall = each(ownCPU), each(apiCPU), each(wall)
	return f
}
