// Package deploy tests what Headwater is installed and watched with: the Helm
// chart, what is made from it, the image's binary, the alerts and the dashboard.
// It is a module of its own, so that helm, kustomize and PromQL never reach the
// product's go.mod.
//
// Files that are made from the chart are written anew with UPDATE=1.
package deploy
