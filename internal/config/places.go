package config

// The ConfigMaps of Headwater's own namespace that hold a configuration, and the
// key under which they do.
const (
	// ConfigMapName names the ConfigMap that the chart makes, and that commands
	// read when no file is given.
	ConfigMapName = "headwater"
	// LastValidName names the copy of the last valid content of ConfigMapName.
	LastValidName = "headwater-last-valid"
	// ConfigMapKey is the key in both.
	ConfigMapKey = "headwater.yaml"
)
