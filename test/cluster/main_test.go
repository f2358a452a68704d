package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// runChild makes the test binary a process that holds a cluster in the folder it
// is given until somebody ends it.
const runChild = "HEADWATER_TEST_CLUSTER_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(runChild); dir != "" {
		os.Exit(holdCluster(dir))
	}
	os.Exit(Run(m, Options{}))
}

func holdCluster(dir string) int {
	c, err := Start(context.Background(), Options{Dir: dir})
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(c.PIDs())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	<-c.Done()
	return 1
}
