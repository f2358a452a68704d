package node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime"
	"strings"

	"github.com/headwater-k8s/headwater/test/lab"
)

// writeImage makes an archive, as docker save does, of an image that holds
// busybox and its applets, and sleeps unless told otherwise. The format:
// https://github.com/moby/docker-image-spec/blob/main/spec.md
func writeImage(to, busybox string) error {
	layer, err := layerOf(busybox)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/bin/sleep", "infinity"}, "Env": []string{"PATH=/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{
		"Config": "config.json", "RepoTags": []string{lab.Image}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return err
	}
	archive, err := archiveOf([]entry{
		{tar.Header{Name: "manifest.json", Mode: 0o644}, manifest},
		{tar.Header{Name: "config.json", Mode: 0o644}, config},
		{tar.Header{Name: "layer.tar", Mode: 0o644}, layer},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(to, archive, 0o600)
}

func layerOf(busybox string) ([]byte, error) {
	program, err := os.ReadFile(busybox)
	if err != nil {
		return nil, err
	}
	applets, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its applets: %w", busybox, err)
	}
	entries := []entry{
		{tar.Header{Typeflag: tar.TypeDir, Name: "bin/", Mode: 0o755}, nil},
		{tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}, nil},
		{tar.Header{Name: "bin/busybox", Mode: 0o755}, program},
	}
	for _, applet := range strings.Fields(string(applets)) {
		if applet != "busybox" {
			entries = append(entries, entry{tar.Header{Typeflag: tar.TypeSymlink, Name: path.Join("bin", applet), Linkname: "busybox"}, nil})
		}
	}
	return archiveOf(entries)
}

type entry struct {
	header  tar.Header
	content []byte
}

func archiveOf(entries []entry) ([]byte, error) {
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, e := range entries {
		e.header.Size = int64(len(e.content))
		if err := archive.WriteHeader(&e.header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(e.content); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), archive.Close()
}
