package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/headwater-k8s/headwater/test/bench/measure"
)

// openPage measures how long a reader of the page waits for the state of all clones,
// and what one who stays costs a fan-out.
func (a *arena) openPage(ctx context.Context) error {
	a.Run.Args = []string{"--page", "--page-localhost"}
	if _, _, err := a.restart(ctx); err != nil {
		return err
	}
	var opened []time.Duration
	for range a.options.rounds {
		page, err := a.readPage(ctx)
		if err != nil {
			return err
		}
		opened = append(opened, page.took)
		page.leave()
	}
	a.results.Alone(measure.Name{Key: fmt.Sprintf("views/page/clones=%d", a.total()), What: fmt.Sprintf("page opened to the state of %d clones", a.total())}, opened)
	took, floor, err := measure.Alternate(ctx, a.rounds(a.clones), func(ctx context.Context) (time.Duration, error) {
		page, err := a.readPage(ctx)
		if err != nil {
			return 0, err
		}
		defer page.leave()
		return a.untilCloned(ctx)
	}, a.untilCloned)
	if err != nil {
		return err
	}
	a.results.Compared(measure.Name{Key: fmt.Sprintf("views/page-open/clones=%d", a.clones), What: fmt.Sprintf("source edit to the last of %d clones, with an open page", a.clones)}, took, floor)
	a.Run.Args = nil
	_, _, err = a.restart(ctx)
	return err
}

// pageReader is somebody who has the page open.
type pageReader struct {
	took  time.Duration // until the state of all clones was there
	leave func()
}

// readPage opens the page's stream, waits for the grid, and reads on in the
// background.
func (a *arena) readPage(ctx context.Context) (*pageReader, error) {
	ctx, cancel := context.WithCancel(ctx)
	shown, ended := make(chan struct{}), make(chan error, 1)
	began := time.Now()
	var reading sync.WaitGroup
	reading.Go(func() { ended <- followPage(ctx, a.headwater.MetricsURL+"/page/stream", shown) })
	select {
	case <-shown:
		return &pageReader{took: time.Since(began), leave: func() { cancel(); reading.Wait() }}, nil
	case err := <-ended:
		cancel()
		return nil, fmt.Errorf("the page's stream: %w", err)
	}
}

// followPage closes shown once the grid has come, and reads until ctx ends.
func followPage(ctx context.Context, url string, shown chan<- struct{}) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	events := bufio.NewReader(response.Body)
	for line := ""; line != "event: grid\n"; {
		if line, err = events.ReadString('\n'); err != nil {
			return err
		}
	}
	if _, err := events.ReadString('\n'); err != nil { // its data
		return err
	}
	close(shown)
	_, err = io.Copy(io.Discard, events)
	return err
}
