package node

import (
	_ "embed"
	"fmt"
	"os"
	"strings"
	"text/template"

	"github.com/headwater-k8s/headwater/test/lab"
)

var (
	//go:embed node.sh
	script string
	//go:embed containerd.toml
	containerdSettings string
	//go:embed kubelet.yaml
	kubeletSettings string
)

// loopback is all the network that pods have: they use the machine's own.
const loopback = `{"cniVersion": "0.4.0", "name": "lo", "plugins": [{"type": "loopback"}]}`

// writeFiles writes what containerd and the kubelet read.
func (n *Node) writeFiles(busybox string) error {
	if err := os.MkdirAll(n.path("cni"), 0o755); err != nil {
		return fmt.Errorf("make the node's folder: %w", err)
	}
	address, err := lab.FreeAddress()
	if err != nil {
		return err
	}
	_, port, _ := strings.Cut(address, ":")
	values := struct{ Dir, Image, Port string }{n.dir, lab.Image, port}
	files := map[string]string{"cni/10-lo.conflist": loopback, "resolv.conf": ""}
	for name, settings := range map[string]string{"containerd.toml": containerdSettings, "kubelet.yaml": kubeletSettings} {
		var filled strings.Builder
		if err := template.Must(template.New(name).Parse(settings)).Execute(&filled, values); err != nil {
			return fmt.Errorf("write the node's settings: %w", err)
		}
		files[name] = filled.String()
	}
	for name, content := range files {
		if err := os.WriteFile(n.path(name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("write the node's settings: %w", err)
		}
	}
	if err := writeImage(n.path("image.tar"), busybox); err != nil {
		return fmt.Errorf("make the image: %w", err)
	}
	return nil
}
