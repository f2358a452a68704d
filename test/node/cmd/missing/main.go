// Command missing says what this machine lacks to run a node, and fails then.
package main

import (
	"fmt"
	"os"

	"github.com/headwater-k8s/headwater/test/node"
)

func main() {
	if err := node.Missing(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
