"""The pMSE mechanism: parameters drawn privately, the likelier the harder their files are to tell from the original."""

from discreet.synth.pmse_mechanism.mechanism import PMSEMechanism

__all__ = ["PMSEMechanism"]
