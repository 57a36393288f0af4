// Prints the definitions of Karpenter's resources, which its packages contain, for kubectl.
package main

import (
	"os"

	kwok "sigs.k8s.io/karpenter/kwok/apis"
	"sigs.k8s.io/karpenter/pkg/apis"
)

func main() {
	for _, definition := range [][]byte{
		apis.NodePoolCRD, apis.NodeClaimCRD, apis.NodeOverlayCRD, apis.CapacityBufferCRD, kwok.KWOKNodeClassCRD,
	} {
		os.Stdout.Write(definition)
	}
}
