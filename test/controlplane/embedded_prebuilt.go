//go:build prebuilt

package main

// embedded is empty in this build: all programs come from KUBEBUILDER_ASSETS.
var embedded = map[string]func(args []string){}
