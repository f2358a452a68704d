// Package deploy tests what Headwater is installed and watched with: the Helm
// chart, what is made from it, the image's binary, the alerts and the dashboard.
// It is a module of its own, so that helm, kustomize and PromQL never reach the
// product's go.mod.
//
// UPDATE=1 rewrites the files that are generated from the chart.
package deploy
