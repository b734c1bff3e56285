// Prints the encodings that k8s.io/api publishes as test data: a type, its protobuf in base64, its JSON.
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Package and kind as the table names them, and the name of the file.
var wanted = [][2]string{
	{"core/v1.Pod", "core.v1"}, {"core/v1.Node", "core.v1"}, {"core/v1.Namespace", "core.v1"},
	{"core/v1.Service", "core.v1"}, {"core/v1.ConfigMap", "core.v1"}, {"core/v1.Secret", "core.v1"},
	{"core/v1.PersistentVolumeClaim", "core.v1"}, {"core/v1.PersistentVolume", "core.v1"},
	{"core/v1.Event", "core.v1"}, {"core/v1.Binding", "core.v1"}, {"core/v1.ResourceQuota", "core.v1"},
	{"core/v1.LimitRange", "core.v1"}, {"meta/v1.DeleteOptions", "core.v1"}, {"meta/v1.Status", "core.v1"},
	{"apps/v1.Deployment", "apps.v1"}, {"apps/v1.ControllerRevision", "apps.v1"},
	{"coordination/v1.Lease", "coordination.k8s.io.v1"}, {"discovery/v1.EndpointSlice", "discovery.k8s.io.v1"},
	{"policy/v1.PodDisruptionBudget", "policy.v1"}, {"policy/v1.Eviction", "policy.v1"},
	{"autoscaling/v1.Scale", "autoscaling.v1"}, {"rbac/v1.ClusterRole", "rbac.authorization.k8s.io.v1"},
	{"storage/v1.StorageClass", "storage.k8s.io.v1"}, {"storage/v1.CSIDriver", "storage.k8s.io.v1"},
	{"admissionregistration/v1.MutatingWebhookConfiguration", "admissionregistration.k8s.io.v1"},
	{"authorization/v1.SubjectAccessReview", "authorization.k8s.io.v1"},
}

func main() {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		log.Fatal(err)
	}
	folder := filepath.Join(strings.TrimSpace(string(out)), "testdata", "HEAD")
	for _, one := range wanted {
		_, kind, _ := strings.Cut(one[0], ".")
		file := filepath.Join(folder, one[1]+"."+kind)
		protobuf, err := os.ReadFile(file + ".pb")
		if err != nil {
			log.Fatal(err)
		}
		text, err := os.ReadFile(file + ".json")
		if err != nil {
			log.Fatal(err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, text); err != nil {
			log.Fatal(err)
		}
		fmt.Fprintf(os.Stdout, "%s %s %s\n", one[0], base64.StdEncoding.EncodeToString(protobuf), compact.String())
	}
}
