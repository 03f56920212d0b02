"""What crosses the network, bit by bit: encoders for cohorts and decoders that trust nothing."""

from dprec.wire.report import DecodedReports, ReportCodec

__all__ = ["DecodedReports", "ReportCodec"]
