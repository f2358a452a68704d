module github.com/headwater-k8s/headwater/broken

go 1.26.0
