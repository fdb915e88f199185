"""Neural models on this machine: their loader, BLEURT, entailment models and sentence encoders."""
